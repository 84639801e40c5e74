"""The sites of this broker as it pulls work: slots, jobs that run, and jobs that wait by priority (rows W2, W3; decision J8).

Counted by an index of the jobs that are ready, up to a bound for each priority, and by what the agent tally keeps; no statement
goes through the jobs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Q, Sum
from django.db.models.functions import Now

from broker_site.foundation import gdpconfig
from brokerage.models import ComputingQueue, DeclaredSlots, Site, StorageEndpoint
from brokerage.queries.submission import NONE, cycle_rules
from brokerage.rules.submission.pulling_sites import pulling_site
from brokerage.states import JOB
from workqueues.rules.elements.acquisition import free_jobs
from workqueues.rules.elements.site_slots import SiteSlots

MOST_COUNTED = 10_000
"""Jobs of one priority that are counted in a task queue: no site has more empty slots for an element."""

_READY = """
WITH RECURSIVE class (queue, priority) AS (
    SELECT t.id, (SELECT min(j.ready_priority) FROM brokerage_job j WHERE j.task_queue_id = t.id AND j.ready_priority IS NOT NULL)
    FROM brokerage_taskqueue t
    UNION ALL
    SELECT c.queue, (SELECT min(j.ready_priority) FROM brokerage_job j
        WHERE j.task_queue_id = c.queue AND j.ready_priority > c.priority)
    FROM class c WHERE c.priority IS NOT NULL
), counted AS MATERIALIZED (
    SELECT c.queue, -c.priority AS priority, (SELECT count(*) FROM (SELECT FROM brokerage_job j
        WHERE j.task_queue_id = c.queue AND j.ready_priority = c.priority LIMIT %(most)s) bounded)::int AS n
    FROM class c WHERE c.priority IS NOT NULL
), places AS (
    SELECT DISTINCT c.queue, q.site_id FROM (SELECT DISTINCT queue FROM counted) c JOIN brokerage_taskqueue t ON t.id = c.queue
        LEFT JOIN brokerage_requirementplace p ON t.computing_queue_id IS NULL AND p.requirement_set_id = t.requirement_set_id
        JOIN brokerage_computingqueue q ON q.id = coalesce(t.computing_queue_id, p.computing_queue_id)
)
SELECT p.site_id, c.priority, sum(c.n)::bigint FROM counted c JOIN places p ON p.queue = c.queue GROUP BY 1, 2 ORDER BY 1, 2
"""
"""A job that may go to several sites counts at each of them."""
_LEVELS = """
SELECT q.site_id, l.what, sum(l.n)::bigint FROM brokerage_tallygroup g JOIN brokerage_tallylevel l ON l.group_id = g.id
    JOIN brokerage_computingqueue q ON q.name = g.queue
WHERE g.family = 'queue' GROUP BY 1, 2 ORDER BY 1, 2
"""


class PullingSites(NamedTuple):
    """Sites by name; jobs at each that wait, by priority, and those that wait for their input; own queues of each; and how many
    jobs this broker may still have, None: any number.
    """

    sites: Mapping[str, SiteSlots]
    ready: Mapping[str, Mapping[int, int]]
    not_ready: Mapping[str, int]
    queues: Mapping[str, list[str]]
    free_jobs: int | None


def pulling_sites() -> PullingSites:
    """All sites that have a queue; six statements."""
    queues: dict[str, list[str]] = defaultdict(list)
    statuses: dict[str, list[str]] = defaultdict(list)
    for site, name, status in ComputingQueue.objects.order_by("name").values_list("site_id", "name", "status"):
        queues[site].append(name)
        statuses[site].append(status)
    declared, levels, rule = _declared(), _levels(), cycle_rules().rule
    running = {site: sum(of_site[state] for state in JOB.leased) for site, of_site in levels.items()}
    sites = {
        name: pulling_site(state, statuses[name], cpu_slots, declared.get(name, 0), running.get(name, 0), rule)
        for name, state, cpu_slots in Site.objects.order_by("name").values_list("name", "state", "cpu_slots")
        if name in queues
    }
    not_ready = {site: sum(of_site[state] for state in JOB.waiting - ("activated",)) for site, of_site in levels.items()}
    return PullingSites(sites, _ready(), not_ready, queues, _free_jobs(sum(running.values())))


def known_storages() -> Collection[str]:
    """The storage endpoints of this grid."""
    return set(StorageEndpoint.objects.values_list("name", flat=True))


def _declared() -> dict[str, int]:
    rows = DeclaredSlots.objects.filter(Q(expires=None) | Q(expires__gt=Now()), n__gt=0)
    return dict(rows.values("queue__site_id").annotate(slots=Sum("n")).values_list("queue__site_id", "slots"))


def _levels() -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for site, state, n in _rows(_LEVELS, {}):
        found[site][state] = max(int(n), 0)
    return found


def _ready() -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = defaultdict(dict)
    for site, priority, n in _rows(_READY, {"most": MOST_COUNTED}):
        found[site][priority] = int(n)
    return found


def _free_jobs(executing: int) -> int | None:
    """By the hard limit of what is submitted, where this broker submits jobs at all."""
    if not ComputingQueue.objects.exclude(submission=NONE).exists():
        return None
    limit = gdpconfig.component("submission")
    return free_jobs(limit["MAX_JOBS"], limit["MAX_JOBS_PART"], executing)


def _rows(sql: str, values: Mapping[str, Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())
