"""What submission goes by: sites with their thresholds and the jobs that are there, jobs that wait, and pilots to be started.

What is at the sites is counted by the rows of submitted jobs, of which the hard limit allows so many; no statement goes through
the jobs of the broker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections

from broker_site.foundation import gdpconfig
from brokerage.queries.match_limits import limit_rows
from brokerage.queries.site_limits import advertised_sites, max_age_s
from brokerage.queries.task_queue_facts import TaskQueueFacts, task_queue_facts
from brokerage.rules.dispatch.match_limits import ATTRIBUTES
from brokerage.rules.dispatch.stranding import HANDS_OUT
from brokerage.rules.dispatch.timeouts import lease_s
from brokerage.rules.dispatch.waiting_list import WaitingQueue
from brokerage.rules.facts.job_kind import JobKind
from brokerage.rules.submission.job_kinds import KIND_PRIORITIES, KINDS
from brokerage.rules.submission.site_caps import Cap, JobValue
from brokerage.rules.submission.site_states import site_state
from brokerage.rules.submission.site_thresholds import ThresholdRule, slots_of
from brokerage.rules.submission.submission_cycle import CachedJob, CycleRules, SubmissionSite, Use, Waits, kind_of, plan_cycle
from brokerage.states import JOB

NONE = "none"
"""The attribute of queues whose jobs go to pilots that ask."""

_SITES = """
SELECT s.name, s.state, s.cpu_slots, s.io_slots, extract(epoch FROM now() - s.state_since)::float8,
    array_agg(json_build_array(q.id, q.name, q.status, q.workflow, q.submission, extract(epoch FROM now() - q.status_since),
        EXISTS (SELECT FROM brokerage_queuestorage w WHERE w.queue_id = q.id AND w.access LIKE 'write%%')
        AND NOT EXISTS (SELECT FROM brokerage_queuestorage w JOIN brokerage_storageendpoint e ON e.name = w.storage_id
            WHERE w.queue_id = q.id AND w.access LIKE 'write%%' AND e.root_state <> 'down')) ORDER BY q.name),
    coalesce((SELECT sum(d.n) FROM brokerage_declaredslots d JOIN brokerage_computingqueue c ON c.id = d.queue_id
        WHERE c.site_id = s.name AND d.n > 0 AND (d.expires IS NULL OR d.expires > now())), 0)::int
FROM brokerage_site s JOIN brokerage_computingqueue q ON q.site_id = s.name
WHERE EXISTS (SELECT FROM brokerage_computingqueue c WHERE c.site_id = s.name AND c.submission <> 'none')
GROUP BY s.name ORDER BY s.name
"""
_USE = f"""
SELECT s.site_id, s.kind, count(*) FILTER (WHERE j.status IN ({JOB.starting.sql})),
    count(*) FILTER (WHERE j.status NOT IN ({JOB.starting.sql})), max(j.priority)
FROM brokerage_submittedjob s JOIN brokerage_job j ON j.id = s.job_id
WHERE j.status IN ({JOB.leased.sql}) AND j.lease_holder = s.pilot_id GROUP BY 1, 2 ORDER BY 1, 2
"""
_CACHE = """
SELECT j.id, j.kind, -j.ready_priority, j.task_queue_id, EXISTS (SELECT FROM brokerage_jobspec p WHERE p.job_id = j.id)
FROM brokerage_taskqueue t JOIN brokerage_job j ON j.task_queue_id = t.id AND j.ready_priority IS NOT NULL
    JOIN unnest(%(kinds)s::int[], %(first)s::int[]) AS k(kind, first) ON k.kind = j.kind
WHERE t.computing_queue_id = ANY (%(queues)s) OR (t.computing_queue_id IS NULL AND EXISTS (
    SELECT FROM brokerage_requirementplace p
    WHERE p.requirement_set_id = t.requirement_set_id AND p.computing_queue_id = ANY (%(queues)s)))
ORDER BY k.first DESC, j.ready_priority, j.id LIMIT %(size)s
"""
_STILL = "SELECT id FROM brokerage_job WHERE id = ANY (%s) AND ready_priority IS NOT NULL"
_HELD = f"""
SELECT s.job_id, s.pilot_id, s.submitter, s.handle, s.tries, s.claimed_by <> '', j.epoch, j.status, j.task_id,
    j.kill_requested, j.kill_outcome, j.kill_why
FROM brokerage_submittedjob s JOIN brokerage_job j ON j.id = s.job_id
WHERE j.status IN ({JOB.leased.sql}) AND j.lease_holder = s.pilot_id ORDER BY s.job_id
"""


class SubmissionQueue(NamedTuple):
    """A computing queue whose jobs are submitted; `open`: it hands jobs out now."""

    id: int
    name: str
    site: str
    workflow: str
    submitter: str
    open: bool


class SiteFacts(NamedTuple):
    """The sites by name, and their queues with submission by id."""

    sites: Mapping[str, SubmissionSite]
    queues: Mapping[int, SubmissionQueue]

    def open_queues(self, facts: TaskQueueFacts) -> Iterator[tuple[SubmissionQueue, str]]:
        """The queues to which jobs of a task queue can be submitted, by name, and the storage of outputs of open jobs there."""
        found = [self.queues[id_] for id_ in facts.queues if id_ in self.queues]
        for queue in sorted((one for one in found if one.open), key=lambda one: one.name):
            yield queue, facts.places[queue.id].storage if queue.id in facts.places else ""

    @property
    def shape(self) -> frozenset[tuple[str, str, str]]:
        """What a cache rests on: the queues, and which sites drain or are down."""
        return frozenset(
            (queue.name, queue.site, f"{self.sites[queue.site].state} {queue.open}") for queue in self.queues.values()
        )


class HeldJob(NamedTuple):
    """A submitted job that its pilot, or what starts that, holds. `claimed`: a process came as its pilot."""

    job_id: int
    pilot: UUID
    submitter: str
    handle: str
    tries: int
    claimed: bool
    epoch: int
    status: str
    task_id: int
    kill_requested: bool
    kill_outcome: str
    kill_why: str


def cycle_rules(component: Mapping[str, Any] | None = None) -> CycleRules:
    """As the configuration has it, or this one of its component."""
    config = gdpconfig.component("submission") if component is None else component
    rule = ThresholdRule(
        config["SITE_PENDING_PERCENT"], config["KIND_PENDING_PERCENT"], config["FEWEST_CPU_SLOTS"], config["FEWEST_IO_SLOTS"]
    )
    names = ("HIGHER_PRIORITY_PART", "DRAIN_GRACE", "MAX_JOBS", "MAX_JOBS_PART", "MOST_PER_CYCLE")
    return CycleRules(rule, *(config[name] for name in names))


def site_facts(using: str = DEFAULT_DB_ALIAS) -> SiteFacts:
    """Sites that have a queue with submission, with the jobs that are there now; two statements."""
    sites, queues = {}, {}
    rows, used = _rows(_SITES, {}, using), defaultdict[str, dict[str, Use]](dict)
    for site, kind, pending, running, highest in _rows(_USE, {}, using) if rows else ():
        used[site][kind] = Use(pending, running, highest)
    for name, attribute, cpu, io, state_s, of_site, declared in rows:
        statuses = [status for _, _, status, *_ in of_site]
        state = site_state(attribute, statuses)
        since_s = min(since for *_, since, _ in of_site) if attribute == "ACTIVE" else state_s
        sites[name] = SubmissionSite(name, state, since_s, *slots_of(cpu, io, declared), used[name], declared)
        for id_, queue, status, workflow, submitter, _, down in of_site:
            if submitter != NONE:
                is_open = status in HANDS_OUT and not down
                queues[id_] = SubmissionQueue(id_, queue, name, workflow, submitter, is_open)
    return SiteFacts(sites, queues)


def waiting_jobs(facts: SiteFacts, size: int, using: str = DEFAULT_DB_ALIAS) -> list[CachedJob]:
    """The first jobs that wait to be submitted, in order: kind, priority, id. Two statements."""
    queues = [queue.id for queue in facts.queues.values() if queue.open]
    kinds = {"kinds": [int(kind) for kind in JobKind], "first": [KIND_PRIORITIES[KINDS[kind]] for kind in JobKind]}
    rows = _rows(_CACHE, {**kinds, "queues": queues, "size": size}, using) if queues else []
    known = task_queue_facts({row[3] for row in rows}, using)
    sites = {id_: tuple(dict.fromkeys(queue.site for queue, _ in facts.open_queues(of))) for id_, of in known.items()}
    values = {id_: limited_values(of) for id_, of in known.items()}
    return [
        CachedJob(
            id_, kind_of(kind), priority, task_queue, sites.get(task_queue, ()), described, values.get(task_queue, frozenset())
        )
        for id_, kind, priority, task_queue, described in rows
    ]


def limited_values(of: TaskQueueFacts) -> frozenset[JobValue]:
    """What jobs of a task queue have of attributes that may be limited at sites."""
    queue = WaitingQueue(0, of.requirement, 0, unit=of.unit, label=of.label)
    return frozenset((name, value) for name in ATTRIBUTES for value in queue.values(name))


def still_waiting(ids: Sequence[int]) -> set[int]:
    """Those of the jobs that wait to be handed out."""
    return {id_ for (id_,) in _rows(_STILL, [list(ids)])} if ids else set()


def held_jobs() -> list[HeldJob]:
    """Submitted jobs that have not ended."""
    return [HeldJob(*row) for row in _rows(_HELD, {})]


def lease_at(queue: SubmissionQueue, label: str) -> float:
    """Seconds that a submitted job may be silent."""
    return lease_s(label, queue.workflow, gdpconfig.component("watcher", app="pandaserver"))


def caps_seen(sites: Collection[str], using: str = DEFAULT_DB_ALIAS) -> dict[Cap, int]:
    """What sites still take of submitted jobs by their advertisements and running limits, as it was counted last."""
    caps = {Cap(site): told.room(max_age_s()) for site, told in advertised_sites(sites, using).items()}
    for site in sites:
        for row in limit_rows(site, using):
            if row.most is not None and row.there is not None and not row.on.ce:
                caps[Cap(site, row.on.attribute, row.on.value)] = row.most - row.there
    return caps


def why_not_submitted(job: CachedJob, facts: TaskQueueFacts, using: str = DEFAULT_DB_ALIAS) -> Sequence[Waits] | None:
    """What keeps a job from being submitted now, whatever its `sites` say; None: it is not to be. Empty: nothing does."""
    now = site_facts(using)
    if not any(id_ in now.queues for id_ in facts.queues):
        return None
    sites = tuple(dict.fromkeys(queue.site for queue, _ in now.open_queues(facts)))
    if not sites:
        return [Waits(now.queues[id_].site, "SiteDrains") for id_ in facts.queues if id_ in now.queues]
    caps = caps_seen(now.sites, using)
    plan = plan_cycle([job._replace(sites=sites, values=limited_values(facts))], now.sites, cycle_rules(), caps)
    return plan.why_not.get(job.id, ())


def _rows(sql: str, values: Mapping[str, Any] | Sequence[Any], using: str = DEFAULT_DB_ALIAS) -> list[tuple[Any, ...]]:
    with connections[using].cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())
