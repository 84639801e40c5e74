"""Tasks and jobs by state, and what waits longest: the numbers of the home page. Every statement is bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from broker_site.foundation.access.permissions import VoScope
from brokerage.rules.facts.rollups import FIVE_MINUTES_S
from brokerage.states import JOB
from monitoring.queries.database import rows, seen_by
from workqueues.states import TASK

MOST_LIVE = 100_000
"""Live rows that are counted; beyond, numbers are lower bounds."""
RECENT = 10_000
"""How many of the newest ids are looked at for tasks that have ended."""


@dataclass(frozen=True, slots=True)
class StateCounts:
    """State -> number.

    `live`: not ended, all of them unless `capped`. `ended`: lately, as `notes` say in words; lower bounds where `partial`.
    `last_hour`: those of `ended` that ended within the last hour. `counted`: whether anything was counted yet.
    """

    live: Mapping[str, int]
    ended: Mapping[str, int]
    last_hour: Mapping[str, int]
    capped: bool = False
    partial: bool = False
    counted: bool = True
    notes: Sequence[str] = ()

    @property
    def empty(self) -> bool:
        return not self.live and not self.ended


_TASKS = """
WITH newest AS (SELECT COALESCE(max(id), 0) AS id FROM workqueues_task)
SELECT true, status, count(*), 0, 0 FROM (
    SELECT status FROM workqueues_task WHERE status = ANY(%(live)s) AND (%(everything)s OR vo = ANY(%(vos)s)) LIMIT %(most)s
) AS bounded GROUP BY status
UNION ALL
SELECT false, t.status, count(*), count(*) FILTER (WHERE t.ended_at > now() - interval '1 hour'), (SELECT id FROM newest)
FROM workqueues_task t
WHERE t.id > (SELECT id FROM newest) - %(recent)s AND t.ended_at IS NOT NULL AND (%(everything)s OR t.vo = ANY(%(vos)s))
GROUP BY t.status
"""

_JOBS = f"""
WITH g AS MATERIALIZED (
    SELECT id FROM brokerage_tallygroup WHERE family = 'vo' AND (%(everything)s OR vo = ANY(%(vos)s))
)
SELECT 'mark', 0, count(*) FROM brokerage_tallymark
UNION ALL
SELECT l.what, 0, sum(l.n)::bigint FROM g JOIN brokerage_tallylevel l ON l.group_id = g.id GROUP BY 1 HAVING sum(l.n) > 0
UNION ALL
SELECT b.what, sum(b.n) FILTER (WHERE b.at > now() - interval '1 hour'), sum(b.n)::bigint
FROM g JOIN brokerage_tallybucket b ON b.group_id = g.id
WHERE b.step_s = {FIVE_MINUTES_S} AND b.what = ANY(%(final)s) AND b.at > now() - interval '1 day' GROUP BY 1 HAVING sum(b.n) > 0
"""


def task_counts(scope: VoScope) -> StateCounts:
    """Tasks by state; one statement."""
    found = rows(_TASKS, {**seen_by(scope), "live": list(TASK.live), "most": MOST_LIVE + 1, "recent": RECENT})
    live = {state: n for is_live, state, n, _, _ in found if is_live}
    ended = [row for is_live, *row in found if not is_live]
    capped, partial = sum(live.values()) > MOST_LIVE, any(newest > RECENT for *_, newest in ended)
    notes = [f"Those that ended are counted among the newest {RECENT:,} tasks."] * partial
    notes += [f"More than {MOST_LIVE:,} have not ended; these are the first that were found."] * capped
    return StateCounts(
        live={state: live[state] for state in TASK.states if state in live},
        ended={name: n for name in TASK.states for state, n, _, _ in ended if state == name},
        last_hour={state: n for state, _, n, _ in ended},
        capped=capped,
        partial=partial,
        notes=notes,
    )


def job_counts(scope: VoScope) -> StateCounts:
    """Jobs by state as the agent tally counted them last, and how many ended within a day; one statement, whatever the number."""
    found = {
        what: (n, in_last_hour or 0) for what, in_last_hour, n in rows(_JOBS, {**seen_by(scope), "final": sorted(JOB.final)})
    }
    marks, _ = found.pop("mark")
    return StateCounts(
        live={state: found[state][0] for state in JOB.live if state in found},
        ended={state: found[state][0] for state in JOB.states if state in found and state in JOB.final},
        last_hour={state: found[state][1] for state in found if state in JOB.final},
        counted=marks > 0,
        notes=["Those that ended did so in the last 24 h."],
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
