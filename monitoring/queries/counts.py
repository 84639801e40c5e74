"""Tasks and jobs by state, and what waits longest: the numbers of the home page. Every statement is bounded; what has not
ended is not grouped, the agent tally has counted it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.kernel import clock
from brokerage.queries.kept_counts import KeptCounts, Rows
from brokerage.rules.facts.rollups import FIVE_MINUTES_S, step_after
from brokerage.states import JOB
from monitoring.queries.database import alias, rows, seen_by
from workqueues.states import TASK

RECENT = 10_000
"""How many of the newest ids are looked at for those that have ended."""


@dataclass(frozen=True, slots=True)
class StateCounts:
    """State -> number.

    `live`: not ended, as they were at `counted_at`, None: nobody has counted yet. `ended`: among the newest RECENT, which are all
    unless `partial`, or those `of_a_day`. `last_hour`: those of `ended` that ended within the last hour.
    `never_any`: there was none.
    """

    live: Mapping[str, int]
    ended: Mapping[str, int]
    last_hour: Mapping[str, int]
    counted_at: datetime | None
    partial: bool = False
    of_a_day: bool = False
    never_any: bool = False

    @property
    def empty(self) -> bool:
        return not self.live and not self.ended


_TASKS = """
WITH newest AS (SELECT COALESCE(max(id), 0) AS id FROM workqueues_task)
SELECT state, true, sum(n)::bigint, 0, 0, NULL::timestamptz FROM brokerage_tasklevel
WHERE %(everything)s OR vo = ANY(%(vos)s) GROUP BY state
UNION ALL SELECT '', true, 0, 0, (SELECT id FROM newest), (SELECT counted_at FROM brokerage_tallymark)
UNION ALL
SELECT t.status, false, count(*), count(*) FILTER (WHERE t.ended_at > now() - interval '1 hour'), (SELECT id FROM newest), NULL
FROM workqueues_task t
WHERE t.id > (SELECT id FROM newest) - %(recent)s AND t.ended_at IS NOT NULL AND (%(everything)s OR t.vo = ANY(%(vos)s))
GROUP BY t.status
"""

_JOBS = KeptCounts(f"""
WITH g AS MATERIALIZED (
    SELECT id FROM brokerage_tallygroup WHERE family = 'vo' AND (%(everything)s OR vo = ANY(%(vos)s))
)
SELECT l.what, true, sum(l.n)::bigint, 0, NULL::timestamptz
FROM g JOIN brokerage_tallylevel l ON l.group_id = g.id GROUP BY 1 HAVING sum(l.n) > 0
UNION ALL
SELECT b.what, false, sum(b.n)::bigint, coalesce(sum(b.n) FILTER (WHERE b.at >= %(last_hour)s), 0)::bigint, NULL
FROM g JOIN brokerage_tallybucket b ON b.group_id = g.id
WHERE b.step_s = {FIVE_MINUTES_S} AND b.what = ANY (%(final)s) AND b.at >= %(last_day)s GROUP BY 1
UNION ALL SELECT '', false, 0, 0, counted_at FROM brokerage_tallymark
""")
_SINCE = {"last_hour": 1, "last_day": 24}
"""Name of the parameter -> hours."""


def task_counts(scope: VoScope) -> StateCounts:
    """Tasks by state; one statement."""
    found = rows(_TASKS, {**seen_by(scope), "recent": RECENT})
    live = {state: n for state, is_live, n, *_ in found if is_live}
    ended = [(state, n, hour, newest) for state, is_live, n, hour, newest, _ in found if not is_live]
    return StateCounts(
        live={state: live[state] for state in TASK.states if state in live},
        ended={name: n for name in TASK.states for state, n, _, _ in ended if state == name},
        last_hour={state: n for state, _, n, _ in ended},
        counted_at=next((at for *_, at in found if at), None),
        partial=any(newest > RECENT for *_, newest in ended),
        never_any=all(newest == 0 for *_, newest, _ in found),
    )


def job_counts(scope: VoScope) -> StateCounts:
    """Jobs by state as they were last counted, and those that ended in the last day; one statement, whatever their number."""
    now = clock.now()
    first = {name: step_after(now - timedelta(hours=hours), FIVE_MINUTES_S) for name, hours in _SINCE.items()}
    return _JOBS.answer({**seen_by(scope), **first, "final": sorted(JOB.final)}, _job_counts, using=alias())


def _job_counts(found: Rows) -> StateCounts:
    live = {state: n for state, is_live, n, _, _ in found if is_live}
    ended = {state: (n, hour) for state, is_live, n, hour, _ in found if state and not is_live and n}
    return StateCounts(
        live={state: live[state] for state in JOB.states if state in live},
        ended={state: ended[state][0] for state in JOB.states if state in ended},
        last_hour={state: hour for state, (_, hour) in ended.items()},
        counted_at=next((at for *_, at in found if at), None),
        of_a_day=True,
    )


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """A task that waits, since when and why, and when it is looked at again."""

    id: int
    task_name: str
    user_name: str
    status: str
    status_since: datetime
    error_dialog: str
    next_look_at: datetime | None


def longest_waiting(scope: VoScope, most: int = 5) -> list[WaitingTask]:
    """The tasks that have been stuck for longest, or that the brokerage could not serve."""
    table = rows(
        f"""
        SELECT id, task_name, user_name, status, status_since, error_dialog, next_look_at FROM workqueues_task
        WHERE (status IN ({TASK.stuck.sql}) OR (status IN ({TASK.brokered.sql}) AND error_dialog <> ''))
          AND (%(everything)s OR vo = ANY(%(vos)s))
        ORDER BY status_since LIMIT %(most)s
        """,
        {**seen_by(scope), "most": most},
    )
    return [WaitingTask(*row) for row in table]
