"""Scouts of tasks: how many there are, how they ended, and what the finished ones used. A statement for all tasks at once."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import connection, connections

from brokerage.rules.facts.job_kind import JobKind
from brokerage.states import JOB
from workqueues.rules.jobs.measured_needs import JobFigures
from workqueues.rules.jobs.split_rule import SplitRules, parse
from workqueues.rules.task.scouts import ScoutCounts, ScoutStep, n_scouts, next_step
from workqueues.states import INPUT_FILE, LOG_TYPES, MASTER_TYPES, OUTPUT_FILE

MOST_FIGURES = 1000
"""So many finished jobs speak for a task."""
RESTS_LONG = "t.next_look_at > now() + interval '1 min'"
"""It rests until its scouts have ended; a task whose queues are full rests for seconds."""

_STANDINGS = f"""
SELECT t.id, t.vo, t.prod_source_label, t.split_rule, coalesce(p.task_params->>'maxAttempt', '3')::int,
    t.assessment_time IS NOT NULL, coalesce({RESTS_LONG}, FALSE), s.live, s.finished, s.failed,
    EXISTS (SELECT FROM workqueues_dataset d WHERE d.task_id = t.id AND d.type IN ({MASTER_TYPES.sql}) AND d.master_id IS NULL
        AND d.status = 'ready' AND NOT d.excluded AND d.n_files_to_be_used > d.n_files_used
        AND EXISTS (SELECT FROM workqueues_file f
            WHERE f.dataset_id = d.id AND f.status IN ({INPUT_FILE.usable.sql}) AND f.held = ''))
FROM workqueues_task t LEFT JOIN workqueues_taskparams p ON p.task_id = t.id CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE j.ended_at IS NULL AND j.status <> 'merging') AS live,
        count(*) FILTER (WHERE j.status IN ({JOB.succeeded.sql})) AS finished,
        count(*) FILTER (WHERE j.status = 'failed') AS failed
    FROM brokerage_job j WHERE j.task_id = t.id AND j.kind = {JobKind.SCOUT.value}
        AND (t.attempt_nr = 0 OR (SELECT created_at FROM brokerage_jobspec WHERE job_id = j.id) >= t.start_time)) s
"""
"""Those of before a retry of the task do not count."""

_FIGURES = f"""
SELECT j.task_id, extract(epoch FROM r.end_time - r.start_time)::float8, j.core_count, coalesce(q.corepower, 0)::float8,
    s.n_events, r.metrics, s.input_bytes, o.total, o.largest
FROM unnest(%(tasks)s::bigint[]) AS v(task_id) CROSS JOIN LATERAL (
    SELECT * FROM brokerage_job WHERE task_id = v.task_id AND status IN ({JOB.succeeded.sql}) AND kind = ANY (%(kinds)s)
    ORDER BY id DESC LIMIT %(most)s) j
JOIN brokerage_jobresult r ON r.job_id = j.id JOIN brokerage_jobspec s ON s.job_id = j.id
JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
CROSS JOIN LATERAL (
    SELECT coalesce(sum(fsize), 0)::float8 AS total,
        coalesce(max(fsize) FILTER (WHERE type NOT IN ({LOG_TYPES.sql})), 0)::float8 AS largest
    FROM workqueues_file WHERE out_job_id = j.id AND status IN ({OUTPUT_FILE.stored.sql})) o
WHERE r.start_time IS NOT NULL AND r.end_time IS NOT NULL ORDER BY j.id
"""


class ScoutStanding(NamedTuple):
    """Where a task is with its scouts. `assessed`: its needs were measured once; `rests`: no scouts are made for it now."""

    task_id: int
    vo: str
    label: str
    rules: SplitRules
    max_attempt: int
    assessed: bool
    rests: bool
    counts: ScoutCounts

    @property
    def wanted(self) -> int:
        """How many scouts it has in all."""
        return n_scouts(self.rules)

    @property
    def step(self) -> ScoutStep:
        """What they need next."""
        return next_step(self.counts, self.rules, self.max_attempt)

    @property
    def progress(self) -> str:
        """How far they are, in words."""
        live, finished, failed, _ = self.counts
        ended = f"{finished} of {self.wanted} scouts finished"
        tries = f"{failed} {'try' if failed == 1 else 'tries'} failed"
        return ", ".join([ended, *([f"{live} under way"] if live else []), *([tries] if failed else [])])


def standings_of(task_ids: Collection[int], using: str = "default") -> dict[int, ScoutStanding]:
    """Those of these tasks."""
    return _standings("WHERE t.id = ANY(%s)", [list(task_ids)], using) if task_ids else {}


def standings() -> dict[int, ScoutStanding]:
    """Those of all tasks that scout and on which no agent works."""
    return _standings("WHERE t.status = 'scouting' AND (t.locked_by = '' OR t.locked_time < now())", [])


def _standings(which: str, values: list[Any], using: str = "default") -> dict[int, ScoutStanding]:
    with connections[using].cursor() as cursor:
        cursor.execute(f"{_STANDINGS} {which} ORDER BY t.id", values)
        return {
            id_: ScoutStanding(
                id_, vo, label, parse(rule), 1 if parse(rule).no_retry else max_attempt, assessed, rests, ScoutCounts(*counts)
            )
            for id_, vo, label, rule, max_attempt, assessed, rests, *counts in cursor.fetchall()
        }


def figures_of(task_ids: Sequence[int], kinds: Sequence[JobKind] = (JobKind.SCOUT,)) -> Mapping[int, Sequence[JobFigures]]:
    """What the finished jobs of these kinds used, by task."""
    by_task: dict[int, list[JobFigures]] = defaultdict(list)
    if not task_ids:
        return by_task
    with connection.cursor() as cursor:
        cursor.execute(_FIGURES, {"tasks": list(task_ids), "most": MOST_FIGURES, "kinds": [kind.value for kind in kinds]})
        for task_id, exec_s, cores, power, events, told, in_bytes, out_bytes, largest in cursor.fetchall():
            metrics = json.loads(told)
            by_task[task_id].append(
                JobFigures(
                    exec_s,
                    cores,
                    power,
                    events,
                    cpu_s=_number(metrics, "cpu_s"),
                    max_pss_mb=_number(metrics, "max_pss_mb", "max_rss_mb"),
                    input_bytes=float(in_bytes),
                    output_bytes=out_bytes,
                    largest_output_bytes=largest,
                    read_bytes=_number(metrics, "read_bytes"),
                    written_bytes=_number(metrics, "written_bytes"),
                    work_mb=_number(metrics, "work_mb"),
                )
            )
    return by_task


def _number(metrics: Mapping[str, Any], *names: str) -> float | None:
    """The first of these that was measured; what is no number, or less than nothing, was not."""
    for name in names:
        value = metrics.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return float(value)
    return None
