"""Scouts: whether a task has any, what they need next, and what follows once they have ended. Pure.

Source: seed 001 (task states, broken and exhausted tasks), row J20; decision D7; facts on workflows 7.8, on the brokerage 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, NamedTuple

from workqueues.rules.jobs.activity import Activity
from workqueues.rules.jobs.measured_needs import JobFigures
from workqueues.rules.jobs.split_rule import SplitRules

N_SCOUTS = 10
WORTH = 2
"""Scouts are worth while from so many times as many expected jobs on."""
UNKNOWN_GB = 20.0
"""Size of a job where nothing is known of it."""
USER_SUCCESS_TENTHS = 5
"""Of the scouts of a user's task so many tenths must succeed, where the task says nothing."""
MIN, DAY_S = 60.0, 86_400.0
FEW_JOBS = 20
"""Practice's rules leave tasks alone that have no more jobs to come than this."""


LABELLED = (
    "SCOUT_SHORT_EXECTIME", "SCOUT_NUM_SHORT", "SCOUT_THR_SHORT", "SCOUT_LOW_CPU_EFFICIENCY", "SCOUT_NUM_CPU_INEFFICIENT",
    "SCOUT_THR_CPU_INEFFICIENT", "SCOUT_MAX_IO_INTENSITY_FOR_EXHAUSTED", "SCOUT_MIN_OK_RATE_EXHAUSTED",
)  # fmt: skip
"""Keys that may be set for one source label."""


def n_scouts(rules: SplitRules) -> int:
    """How many scouts the task has."""
    return rules.n_scouts or N_SCOUTS


def expected_jobs(rules: SplitRules, n_files: int, n_events: int, n_bytes: int, max_files: int, *, numbered: bool) -> int:
    """About how many jobs are made of so much input, of one master dataset; at least one where there is any.

    `max_files` of a job that does not say; `numbered`: the files are pseudo files, of which a job takes one.
    """
    if not n_files:
        return 0
    per_job = rules.events_per_job or rules.target_events
    if per_job and n_events:
        return -(-n_events // per_job)
    if numbered or rules.files_per_job:
        return -(-n_files // (rules.files_per_job or 1))
    by_size = n_bytes / (1e9 * (rules.gb_per_job or UNKNOWN_GB))
    return max(-(-n_files // (rules.max_files_per_job or max_files)), min(int(by_size), n_files), 1)


def worth_while(rules: SplitRules, jobs: int) -> bool:
    """Whether so many expected jobs are enough for scouts (decision D7)."""
    return jobs >= WORTH * n_scouts(rules)


class ScoutCounts(NamedTuple):
    """Scouts of a task: alive, finished, failed; `spare`: whether files are left of which more could be made."""

    live: int
    finished: int
    failed: int
    spare: bool


class ScoutStep(NamedTuple):
    """What is due: `more` scouts to be made, a first look at what the finished ones `measured`, the `end` of scouting."""

    more: int = 0
    measured: bool = False
    end: bool = False


def next_step(counts: ScoutCounts, rules: SplitRules, max_attempt: int) -> ScoutStep:
    """What the scouts of a task need. `max_attempt`: tries of a file.

    Scouts that were closed or cancelled are made anew, those that failed as long as all of them together have not failed as often
    as their files may. Needs are measured at half of them and at the end (decision D7).
    """
    wanted = n_scouts(rules)
    most_failures = wanted * max(max_attempt, 1)
    missing = max(0, wanted - counts.live - counts.finished)
    more = missing if counts.spare and counts.failed < most_failures else 0
    return ScoutStep(more, counts.finished >= -(-wanted // 2), counts.live == 0 and more == 0)


class ScoutVerdict(NamedTuple):
    """What becomes of a task whose scouts have ended, and why in words."""

    outcome: Literal["avalanche", "exhausted", "broken"]
    reason: str


@dataclass(frozen=True, slots=True)
class ScoutedTask:
    """A task whose scouts have ended. `expected`: jobs that are still to come; cpuTime in HS06 s for each event and ramCount in
    its unit, as the task asked for and as they were measured (None: not).
    """

    activity: Activity
    rules: SplitRules
    counts: ScoutCounts
    figures: Sequence[JobFigures]
    expected: int
    max_attempt: int = 1
    asked_cpu_time: float | None = None
    cpu_time: float | None = None
    asked_ram: float | None = None
    ram: float | None = None
    io_intensity: float | None = None


def verdict(task: ScoutedTask, config: Mapping[str, Any]) -> ScoutVerdict:
    """Broken where none, or too few, succeeded; exhausted where going on would be a waste; else all other jobs are made.

    `config`: component dbproxy for the label of the task.
    """
    finished, failed = task.counts.finished, task.counts.failed
    if failed and not finished:
        return ScoutVerdict("broken", f"none of its first jobs succeeded, {failed} failed")
    if low := _few_succeeded(task, config):
        return low
    tests = (_cpu_time, _short_jobs, _memory, _efficiency, _cpu_abuse)
    reason = next(filter(None, (test(task, config) for test in tests)), "")
    if reason:
        return ScoutVerdict("exhausted", reason)
    measured = f"{finished} first job{'' if finished == 1 else 's'} finished"
    return ScoutVerdict("avalanche", measured if finished else "its first jobs have ended, and none of them failed")


def _few_succeeded(task: ScoutedTask, config: Mapping[str, Any]) -> ScoutVerdict | None:
    """Failures count as files that they used up: so many tries are one."""
    tenths = task.rules.scout_success_rate or (USER_SUCCESS_TENTHS if task.activity == "analysis" else 0)
    given_up = task.counts.failed // max(task.max_attempt, 1)
    if not tenths or not given_up:
        return None
    rate = task.counts.finished / (task.counts.finished + given_up)
    if rate * 10 >= tenths:
        return None
    reason = f"{rate:.0%} of its first jobs succeeded, at least {10 * tenths} % must"
    least = config.get("SCOUT_MIN_OK_RATE_EXHAUSTED")
    kept = least is not None and least * 10 < tenths and rate >= least
    return ScoutVerdict("exhausted" if kept else "broken", reason)


def wrong_cpu_time(measured: float, defined: float, factor: float) -> bool:
    """Whether a task's definition of cpuTime is that far off (seed 001: more than twice)."""
    return bool(factor) and defined > 0 and measured > factor * defined


def too_short(n_short: int, n_expected: int, config: Mapping[str, Any]) -> bool:
    """Whether so many jobs would come that are as short as these scouts (seed 001: more than 5, and more than 1,000)."""
    return bool(n_short > config["SCOUT_NUM_SHORT"] and n_expected > config["SCOUT_THR_SHORT"])


def _cpu_time(task: ScoutedTask, config: Mapping[str, Any]) -> str:
    asked, measured = task.asked_cpu_time, task.cpu_time
    if task.activity != "production" or asked is None or measured is None:
        return ""
    factor = config["SCOUT_WRONG_CPUTIME_THRESHOLD"]
    if not wrong_cpu_time(measured, asked, factor):
        return ""
    return f"its first jobs took {measured:.4g} HS06 s an event, more than {factor:g} times the {asked:.4g} that it defines"


def _short_jobs(task: ScoutedTask, config: Mapping[str, Any]) -> str:
    short_s = config["SCOUT_SHORT_EXECTIME"]
    n_short = sum(job.exec_s < short_s for job in task.figures)
    if task.activity != "analysis" or not too_short(n_short, task.expected, config):
        return ""
    return f"{n_short} of its first jobs took less than {short_s / MIN:g} min, and about {task.expected} more would come"


def _memory(task: ScoutedTask, config: Mapping[str, Any]) -> str:
    most = config["SCOUT_RAM_THR_EXHAUSTED"]
    if not most or task.expected <= FEW_JOBS or task.ram is None or not (task.asked_ram or 0) < most < task.ram:
        return ""
    return f"its first jobs used {task.ram:.0f} MB, more than {most:g}, and it asked for {task.asked_ram or 0:.0f}"


def _efficiency(task: ScoutedTask, config: Mapping[str, Any]) -> str:
    percents = [percent for job in task.figures if (percent := job.cpu_percent) is not None]
    most_io = config["SCOUT_MAX_IO_INTENSITY_FOR_EXHAUSTED"]
    if not percents or (most_io and (task.io_intensity or 0.0) > most_io):
        return ""
    least = task.rules.min_cpu_efficiency
    if least and (middle := median(percents)) < least:
        return f"its first jobs used {middle:.0f} % of their cores, at least {least} % are wanted"
    tenths, low = config["SCOUT_NUM_CPU_INEFFICIENT"], config["SCOUT_LOW_CPU_EFFICIENCY"]
    n_low = sum(percent < low for percent in percents)
    if tenths and 10 * n_low >= tenths * len(percents) and task.expected > max(config["SCOUT_THR_CPU_INEFFICIENT"], FEW_JOBS):
        return f"{n_low} of its first {len(percents)} jobs used less than {low:g} % of their cores"
    return ""


def _cpu_abuse(task: ScoutedTask, config: Mapping[str, Any]) -> str:
    factor = config["SCOUT_CPU_ABUSE"]
    if not factor or task.expected <= FEW_JOBS:
        return ""
    worst = max((job.cpu_percent or 0.0 for job in task.figures), default=0.0)
    return f"one of its first jobs used {worst:.0f} % of its cores" if worst > 100.0 * factor else ""
