"""What this broker pulled from its parent: what is to be told, fetched, begun or stopped; never rows that are over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection

from broker_site.foundation.kernel.machine import Names
from workqueues.states import INPUT_FILE, MASTER_TYPES, TASK
from workqueues.states.elements import ELEMENT

LIVE_TASK = f"t.status IN ({TASK.live.sql})"
ENDED_FILE = f"f.report_due AND f.status IN ({Names(sorted(INPUT_FILE.final)).sql})"
UNUSED_FILE = f"f.report_due AND f.type IN ({MASTER_TYPES.sql})"
"""Of a task that has ended."""
SINCE = "coalesce(p.told_at, p.pulled_at)"
OF_BEFORE = f"EXISTS (SELECT FROM workqueues_installation i WHERE i.changed_at > {SINCE})"
"""Nothing was said of it since this broker was restored from a backup: what was told before is not known any more."""

_TO_TELL = f"""
WITH chosen AS MATERIALIZED (
    SELECT p.id, due.due FROM workqueues_pulledelement p LEFT JOIN workqueues_task t ON t.id = p.task_id CROSS JOIN LATERAL (
        SELECT EXISTS (SELECT FROM workqueues_file f WHERE f.task_id = p.task_id AND {ENDED_FILE})
            OR t.ended_at IS NOT NULL AND EXISTS (SELECT FROM workqueues_file f WHERE f.task_id = p.task_id AND {UNUSED_FILE})
            AS due) due
    WHERE p.ended_at IS NULL AND p.refused = ''
        AND (p.status <> p.told OR due.due OR {OF_BEFORE} OR now() > p.lease_until - (p.lease_until - {SINCE}) / 2)
    ORDER BY p.told_at NULLS FIRST, p.id LIMIT %(most)s
)
SELECT p.id, p.element_id, p.try_nr, p.incarnation, p.status, p.told, p.task_id, p.priority, coalesce(t.status, ''),
    coalesce(t.command_by, ''), CASE WHEN p.status = 'Failed' THEN coalesce(p.work ->> 'fault', '') ELSE '' END, c.due,
    coalesce((SELECT 100 * sum(d.n_files_finished + d.n_files_failed) / nullif(sum(d.n_files), 0) FROM workqueues_dataset d
        WHERE d.task_id = p.task_id AND d.type IN ({MASTER_TYPES.sql}) AND d.master_id IS NULL), 0)::int, p.given_back,
    extract(epoch FROM now() - t.ended_at)::float8
FROM chosen c JOIN workqueues_pulledelement p ON p.id = c.id LEFT JOIN workqueues_task t ON t.id = p.task_id
ORDER BY p.told_at NULLS FIRST, p.id
"""
_TO_FETCH = """
SELECT id, element_id, try_nr FROM workqueues_pulledelement
WHERE ended_at IS NULL AND status = 'Negotiating' AND incarnation = %(incarnation)s ORDER BY id LIMIT %(most)s
"""
_TO_START = f"""
SELECT id, priority, extract(epoch FROM pulled_at)::float8, jobs, vo,
    ARRAY(SELECT jsonb_array_elements_text(work -> 'sites')), site
FROM workqueues_pulledelement p
WHERE ended_at IS NULL AND refused = '' AND status = 'Acquired' AND told = 'Acquired' AND task_id IS NULL AND lease_until > now()
    AND NOT work ? 'paused' AND NOT {OF_BEFORE}
ORDER BY priority DESC, pulled_at, id LIMIT %(most)s
"""
_WAITING = f"""
SELECT p.site, p.priority, sum(p.jobs)::bigint FROM workqueues_pulledelement p LEFT JOIN workqueues_task t ON t.id = p.task_id
WHERE p.ended_at IS NULL AND p.refused = '' AND (p.task_id IS NULL AND %(unstarted)s OR t.start_time IS NULL AND {LIVE_TASK})
    AND p.status IN ({ELEMENT.returnable.sql})
GROUP BY 1, 2 ORDER BY 1, 2
"""
"""Elements that count at the site for which they were pulled: no job of theirs does yet."""
_TO_STOP = f"""
SELECT p.task_id, p.refused FROM workqueues_pulledelement p JOIN workqueues_task t ON t.id = p.task_id
WHERE p.ended_at IS NULL AND (p.refused <> '' OR p.status = 'CancelRequested') AND t.status <> 'aborting' AND {LIVE_TASK}
ORDER BY p.id LIMIT %(most)s
"""
_LEFT = """
SELECT p.id, f ->> 'lfn' FROM workqueues_pulledelement p, jsonb_array_elements(p.work -> 'inputs') d,
    jsonb_array_elements(d -> 'files') f
WHERE p.id = ANY (%(ids)s) AND NOT coalesce((d ->> 'whole')::bool, false)
    AND NOT EXISTS (SELECT FROM workqueues_file x WHERE x.task_id = p.task_id AND x.lfn = f ->> 'lfn')
ORDER BY 1, 2
"""


_LAST = """
SELECT bool_and(broke), count(*), max(coalesce(ended_at, now())) > now() - make_interval(secs => %(within_s)s),
    (array_agg(fault ORDER BY id DESC))[1]
FROM (SELECT id, ended_at, task_id IS NULL AND work ? 'fault' AS broke, work ->> 'fault' AS fault
    FROM workqueues_pulledelement WHERE ended_at IS NOT NULL OR task_id IS NOT NULL OR work ? 'fault'
    ORDER BY id DESC LIMIT %(n)s) last
"""
"""Of those of which it is known whether they could be tasks."""


class TellableElement(NamedTuple):
    """An element of which something is to be told: `due`: ends of files are; `fault`: why it could not become a task here;
    `percent`: files of its task that have ended; `given_back`: why this broker gives it back; `ended_s`: seconds
    since its task ended, None: it has not.
    """

    id: int
    element_id: int
    try_nr: int
    incarnation: UUID
    status: str
    told: str
    task_id: int | None
    priority: int
    task_status: str
    command_by: str
    fault: str
    due: bool
    percent: int
    given_back: str = ""
    ended_s: float | None = None

    @property
    def task_ended(self) -> bool:
        """Whether no end of a file comes any more; also where the task is gone."""
        return not self.task_status or self.task_status in TASK.final


class StartableElement(NamedTuple):
    """An element that waits to become a task. `created`: when it was pulled, s since 1970; `site`: for which it was pulled."""

    id: int
    priority: int
    created: float
    jobs: int
    vo: str
    sites: Sequence[str]
    site: str


def to_tell(most: int) -> list[TellableElement]:
    """Elements whose state the parent does not know, with ends to tell, or with half of their lease gone."""
    return [TellableElement(*row) for row in _rows(_TO_TELL, {"most": most})]


def why_all_broke_rules(n: int, within_s: float) -> str:
    """Why the last element could be no task here, where the last `n` all could be none, and ended within so many seconds."""
    ((all_broke, there, lately, fault),) = _rows(_LAST, {"n": n, "within_s": within_s})
    return fault if all_broke and there == n and lately else ""


def to_fetch(incarnation: UUID | None, most: int) -> list[tuple[int, int, int]]:
    """Elements pulled from this incarnation of the parent whose work is not here yet: id, and element and try at the parent."""
    return _rows(_TO_FETCH, {"incarnation": incarnation, "most": most}) if incarnation else []


def to_start(most: int) -> list[StartableElement]:
    """Elements that the parent knows to be ours and that are no task yet, the most urgent first."""
    return [StartableElement(*row) for row in _rows(_TO_START, {"most": most})]


def to_stop(most: int) -> list[tuple[int, str]]:
    """Live tasks of elements that are no longer wanted, and why the parent refused them; empty: it wants them cancelled."""
    return _rows(_TO_STOP, {"most": most})


def waiting_elements(*, unstarted: bool) -> dict[str, dict[int, int]]:
    """Site -> priority -> jobs of elements that are tasks without jobs, and of those that are none yet, if these count."""
    found: dict[str, dict[int, int]] = defaultdict(dict)
    for site, priority, jobs in _rows(_WAITING, {"unstarted": unstarted}):
        found[site][priority] = jobs
    return found


def files_left(ids: Collection[int]) -> Mapping[int, list[str]]:
    """Files of these elements that their tasks do not have, by element: such as those of elements that are no tasks."""
    left: dict[int, list[str]] = defaultdict(list)
    for id_, lfn in _rows(_LEFT, {"ids": list(ids)}) if ids else ():
        left[id_].append(lfn)
    return left


def anything_negotiated() -> bool:
    """Whether elements of the last pull are not all ours for certain yet: then there is no next one."""
    rows = _rows("SELECT FROM workqueues_pulledelement WHERE ended_at IS NULL AND status = 'Negotiating' LIMIT 1", {})
    return bool(rows)


def _rows(sql: str, values: Mapping[str, Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())
