"""A task over time: how its jobs came to their ends, at which queues, how long they ran and what memory they took, and what
happened to it. Every statement reads a bounded number of rows of this task alone, by an index.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any

from django.db import connections

from broker_site.foundation.kernel import clock
from brokerage.queries import job_work
from brokerage.queries.automatic_steps import step_of
from brokerage.states import JOB
from monitoring.histograms import Histogram
from monitoring.plots import Curve, Plot
from monitoring.queries.changes import Move, task_moves
from monitoring.queries.database import alias, rows
from monitoring.queries.series import FLOW_COLOURS
from monitoring.queries.tasks import Files, files_of
from workqueues.models import Task
from workqueues.rules.task.changes_in_words import changes_in_words
from workqueues.rules.task.estimate import Estimate, Pace, estimate, why_none

MOST_JOBS = 200_000
"""Jobs of a task that are counted; beyond, numbers are lower bounds."""
MOST_ENDED, MOST_SUMMED = 2_000, 2_000
"""The newest ended jobs whose run time and memory are shown; finished ones whose files and events are added up."""
MOST_QUEUES, MOST_DECISIONS, MOST_NOTES, MOST_FILE_CHANGES = 50, 30, 30, 5_000
STEPS_S = (10, 60, 300, 900, 3_600, 3 * 3_600, 6 * 3_600, 12 * 3_600, 86_400, 7 * 86_400)
MOST_STEPS = 120
BEGIN = datetime(2000, 1, 1, tzinfo=UTC)
NO_QUEUE = ""
BIG, KEPT_S, MOST_KEPT = 5_000, 5.0, 16
"""From so many jobs on what was read of a task stands for some seconds, for each that it is shown to; how many are kept."""

_STEP = "date_bin(make_interval(secs => %(step)s), ended_at, '2000-01-01 00:00+00')"
_ENDS = f"""
SELECT j.status, q.name, j.step, j.n, j.last_hour, j.by_step FROM (
    SELECT status, computing_queue_id, step, count(*) AS n, grouping(step) = 0 AS by_step,
        count(*) FILTER (WHERE ended_at > now() - interval '1 hour') AS last_hour
    FROM (
        SELECT status, computing_queue_id, ended_at, {_STEP} AS step FROM brokerage_job WHERE task_id = %(task)s LIMIT %(most)s
    ) AS bounded
    GROUP BY GROUPING SETS ((status, computing_queue_id), (status, step))
) AS j LEFT JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
"""
# The ids are picked in the index, before any row is read.
_SUMS = f"""
WITH picked AS MATERIALIZED (SELECT id FROM brokerage_job WHERE task_id = %(task)s AND id %% %(every)s = 0)
SELECT {_STEP}, sum({job_work.INPUT_FILES})::bigint * %(every)s, sum(s.n_events)::bigint * %(every)s
FROM picked JOIN brokerage_job j ON j.id = picked.id AND j.status = 'finished' AND {job_work.IS_WORK}
    JOIN brokerage_jobspec s ON s.job_id = j.id
GROUP BY 1
"""
_PSS, _RSS = (
    f"CASE WHEN jsonb_typeof(r.metrics->'{name}') = 'number' THEN (r.metrics->>'{name}')::float8 END"
    for name in ("max_pss_mb", "max_rss_mb")
)
_MEASURED = f"""
WITH newest AS MATERIALIZED (
    SELECT id, status FROM brokerage_job WHERE task_id = %(task)s AND ended_at IS NOT NULL ORDER BY ended_at DESC LIMIT %(most)s
)
SELECT extract(epoch FROM r.end_time - r.start_time)::float8, coalesce({_PSS}, {_RSS}), s.walltime_s, s.ram_mb
FROM newest JOIN brokerage_jobresult r ON r.job_id = newest.id JOIN brokerage_jobspec s ON s.job_id = newest.id
WHERE newest.status = 'finished'
"""
_BESIDE = """
WITH notes AS MATERIALIZED (
    SELECT at, new, who, why FROM workqueues_filechange WHERE task_id = %(task)s ORDER BY id DESC LIMIT %(changes)s
)
SELECT * FROM (
    SELECT last_at, 'brokerage', outcome, policy, n_chosen || ' of ' || n_candidates || ' candidates chosen'
        || CASE WHEN n_times > 1 THEN ', ' || n_times || ' times since ' || to_char(first_at AT TIME ZONE 'UTC', 'MM-DD HH24:MI')
            ELSE '' END, '{}', '{}'
    FROM brokerage_decision WHERE task_id = %(task)s ORDER BY id DESC LIMIT %(decisions)s) AS decisions
UNION ALL
SELECT * FROM (
    SELECT max(at), 'files', new, who, count(*) || ' file' || CASE WHEN count(*) = 1 THEN '' ELSE 's' END
        || CASE WHEN why = '' THEN '' ELSE ': ' || why END, '{}', '{}'
    FROM notes GROUP BY new, who, why, date_trunc('minute', at) ORDER BY 1 DESC LIMIT %(notes)s) AS files
UNION ALL
SELECT since, 'throttle', cause, '', why, '{}', '{}' FROM workqueues_taskthrottle WHERE task_id = %(task)s
UNION ALL
SELECT * FROM (
    SELECT at, 'note', rule, who, why, before::text, after::text
    FROM workqueues_tasknote WHERE task_id = %(task)s ORDER BY id DESC LIMIT %(notes)s) AS own
"""


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened to the task. `kind`: state, brokerage, files, throttle, note; `what` it came to, by whom, and why.

    `rule`: of what the system did by itself, in words; `keys`: those of the configuration on which it depends.
    """

    at: datetime
    kind: str
    what: str
    who: str
    why: str
    rule: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskStep:
    """One step: how many jobs finished in it, failed, and ended otherwise; input files and events of those that finished."""

    at: datetime
    finished: int
    failed: int
    otherwise: int
    files: int
    events: int


@dataclass(frozen=True, slots=True)
class QueueOutcome:
    """Jobs of the task at one queue, by state; `queue` is empty for those that have none."""

    queue: str
    by_state: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.by_state.values())

    @property
    def finished(self) -> int:
        return self.by_state.get("finished", 0)

    @property
    def failed(self) -> int:
        return self.by_state.get("failed", 0)

    @property
    def tried(self) -> int:
        """Those that a pilot brought to an end."""
        return self.finished + self.failed

    @property
    def otherwise(self) -> int:
        """Closed, or cancelled."""
        return sum(n for state, n in self.by_state.items() if state in JOB.final) - self.finished - self.failed

    @property
    def live(self) -> int:
        return sum(n for state, n in self.by_state.items() if state not in JOB.final)


@dataclass(frozen=True, slots=True)
class TaskHistory:
    """What became of a task. `every`: files and events are those of each so manyth job, times that number; 1: of all.
    `capped`: there are more jobs than are counted. `ongoing`: the last step is not over. `as_of`: when it was read.
    """

    steps: Sequence[TaskStep]
    step_s: int
    queues: Sequence[QueueOutcome]
    files: Files
    pace: Pace
    every: int
    run_time: Histogram
    memory: Histogram
    moves: Sequence[Move]
    happenings: Sequence[Happening]
    capped: bool
    ongoing: bool
    as_of: datetime

    @property
    def estimate(self) -> Estimate | None:
        return estimate(self.pace)

    @property
    def why_no_estimate(self) -> str:
        return why_none(self.pace)

    @property
    def completion(self) -> list[Plot]:
        """Jobs that ended so far, and files or events of those that finished."""
        times = [step.at for step in self.steps]

        def so_far(name: str, colour: str) -> Curve:
            return Curve(name, colour, list(accumulate(getattr(step, name) for step in self.steps)))

        curves = [so_far(name, FLOW_COLOURS.get(name, "held")) for name in (*JOB.reported, "otherwise")]
        inputs = [name for name in ("files", "events") if any(getattr(step, name) for step in self.steps)]
        return [
            Plot("Jobs that ended so far", times, self.step_s, curves, levels=True),
            *(
                Plot(f"Input {name} done so far", times, self.step_s, [so_far(name, "running")], levels=True, of=name)
                for name in inputs
            ),
        ]

    @property
    def rate(self) -> Plot:
        """What happened in the steps that are over: one that is not would look like a fall."""
        steps = self.steps[:-1] if self.ongoing else self.steps
        curves = [Curve(name, FLOW_COLOURS[name], [getattr(step, name) for step in steps]) for name in JOB.reported]
        return Plot("Jobs that ended", [step.at for step in steps], self.step_s, curves)


_KEPT: dict[tuple[Any, ...], TaskHistory] = {}


def task_history(task: Task) -> TaskHistory:
    """What became of a task that the visitor may see; of a BIG one what was read a moment ago. Six statements."""
    global _KEPT
    key = (connections[alias()].settings_dict["NAME"], task.id, task.creation_date, task.status, task.status_since)
    young = {k: kept for k, kept in _KEPT.items() if 0 <= (clock.now() - kept.as_of).total_seconds() < KEPT_S}
    found = young.get(key) or _read(task)
    if sum(row.total for row in found.queues) >= BIG:
        young[key] = found
        _KEPT = dict(list(young.items())[-MOST_KEPT:])
    return found


def _read(task: Task) -> TaskHistory:
    as_of = clock.now()
    start, end = task.start_time or task.creation_date, task.ended_at or as_of
    step_s = next((s for s in STEPS_S if (end - start).total_seconds() / s <= MOST_STEPS - 2), 30 * 86_400)
    values = {"task": task.id, "step": step_s, "most": MOST_JOBS + 1}
    ends = rows(_ENDS, values)
    by_step: dict[datetime, dict[str, int]] = defaultdict(dict)
    by_queue: dict[str, dict[str, int]] = defaultdict(dict)
    last_hour = 0
    for status, queue, at, n, lately, is_step in ends:
        if not is_step:
            by_queue[queue or NO_QUEUE][status] = n
        elif at is not None:
            by_step[at][status] = n
            last_hour += lately if status == "finished" else 0
    queues = sorted((QueueOutcome(name, states) for name, states in by_queue.items()), key=lambda row: (-row.total, row.queue))
    total, finished = sum(row.total for row in queues), sum(row.finished for row in queues)
    every = max(1, -(-finished // MOST_SUMMED))
    sums = {at: (files, events) for at, files, events in rows(_SUMS, {**values, "every": every})}
    files = files_of([task.id]).get(task.id, Files())
    moves = task_moves(task.id)
    return TaskHistory(
        _steps(start, end, step_s, by_step, sums),
        step_s,
        queues[:MOST_QUEUES],
        files,
        Pace(finished, last_hour, files.finished, files.left + files.in_jobs, (end - start).total_seconds()),
        every,
        *_histograms(task.id),
        moves,
        _happenings(task.id, moves),
        total > MOST_JOBS,
        task.ended_at is None,
        as_of,
    )


def _steps(
    start: datetime,
    end: datetime,
    step_s: int,
    by_step: Mapping[datetime, Mapping[str, int]],
    sums: Mapping[datetime, tuple[int, int]],
) -> list[TaskStep]:
    """Every step from the first jobs to the end, with one before, so that curves begin at nothing; what was before or came after
    is in the first or the last.
    """
    step = timedelta(seconds=step_s)
    first, last = (BEGIN + (at - BEGIN) // step * step for at in (start - step, end))
    n = (last - first) // step + 1
    table = [[0] * 5 for _ in range(n)]
    for at in {*by_step, *sums}:
        row = table[min(max((at - first) // step, 0), n - 1)]
        ends, (files, events) = by_step.get(at, {}), sums.get(at, (0, 0))
        done, failed = ends.get("finished", 0), ends.get("failed", 0)
        for i, number in enumerate((done, failed, sum(ends.values()) - done - failed, files, events)):
            row[i] += number
    return [TaskStep(first + i * step, *numbers) for i, numbers in enumerate(table)]


def _histograms(task_id: int) -> tuple[Histogram, Histogram]:
    """Run time and memory of the newest jobs that finished, beside the most that they may have."""
    found = rows(_MEASURED, {"task": task_id, "most": MOST_ENDED})
    times = [max(s, 0.0) for s, *_ in found if s is not None]
    memory = [mb for _, mb, *_ in found if mb is not None and mb >= 0]
    longest = max(times, default=0.0)
    unit, size = ("s", 1) if longest < 600 else ("min", 60) if longest < 36_000 else ("h", 3_600)
    walltime, ram = (max((row[i] for row in found), default=0) for i in (2, 3))
    return (
        Histogram("Run time", unit, [s / size for s in times], walltime / size or None),
        Histogram("Memory used", "MB", memory, ram or None),
    )


def _happenings(task_id: int, moves: Sequence[Move]) -> list[Happening]:
    """State changes and what else is kept of the task, the newest first."""
    bounds = {"changes": MOST_FILE_CHANGES, "decisions": MOST_DECISIONS, "notes": MOST_NOTES}
    beside = [
        _happening(at, kind, what, who, "; ".join(filter(None, (why, changes_in_words(json.loads(before), json.loads(after))))))
        for at, kind, what, who, why, before, after in rows(_BESIDE, {"task": task_id, **bounds})
    ]
    states = [_happening(move.at, "state", move.new, move.who, move.why, move.old) for move in moves]
    return sorted([*beside, *states], key=lambda one: one.at, reverse=True)


def _happening(at: datetime, kind: str, what: str, who: str, why: str, old: str = "") -> Happening:
    step = step_of(kind, old, what, who) if kind != "brokerage" else None
    return Happening(at, kind, what, who, why, *((step.rule, step.keys) if step else ()))
