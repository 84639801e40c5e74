"""Parameters that do not go together, whether or not each is supported yet (decision F3), and what a task must say besides."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.rules.task_parameters import TaskParameters

MOST_RECORDS = 1_000_000
"""Most pseudo files, so jobs, of a task without input."""

_TERM = re.compile(r"\s*(\d{1,3}(?:\.\d+)?)\s*%(?:\s+of\s+(?:the\s+)?(?:files|events|inputs?))?\s*")


def check_together(task: TaskParameters) -> list[Problem]:
    return [problem(*found) for rule in _RULES for found in rule(task)]


def n_records(task: TaskParameters) -> int | None:
    """How many pseudo files a task without input gets: nFiles, else nEvents by nEventsPerJob rounded up; None if neither is
    given. Of a periodic task those of a round.
    """
    if task.period:
        return task.periodJobs or 1
    if task.nFiles:
        return task.nFiles
    if task.nEvents and task.nEventsPerJob:
        return -(-task.nEvents // task.nEventsPerJob)
    return None


def cuts_events(task: TaskParameters) -> bool:
    """Whether nEventsPerJob cuts input files at events (decision F2), not into whole files of known events."""
    per_job, per_file = task.nEventsPerJob, task.nEventsPerInputFile
    if not per_job or task.noInput:
        return False
    return not per_file or bool(per_job % per_file) or task.useRealNumEvents


def goal_per_mille(task: TaskParameters) -> int | None:
    """The goal times 10, from goal or from the words of termCondition; None if the task has none."""
    return _per_mille(task.termCondition) if task.goal is None else int(10 * task.goal)


def _per_mille(words: str) -> int | None:
    percent = _TERM.fullmatch(words)
    return int(10 * float(percent[1])) if percent and float(percent[1]) <= 100 else None


Faults = Iterator[tuple[str, str, str]]


def _event_sizes(task: TaskParameters) -> Faults:
    for other in ("nEventsPerRange", "minGranularity", "tgtNumEventsPerJob", "useJobCloning"):
        if task.nEventsPerJob and getattr(task, other):
            yield "nEventsPerJob", "contradiction", f"nEventsPerJob and {other} do not go together"
    if task.groupBoundaryID in (3, 4):
        for other in ("nFilesPerJob", "nEventsPerJob", "nGBPerJob", "tgtNumEventsPerJob"):
            if getattr(task, other):
                yield other, "contradiction", f"groupBoundaryID 3 or 4 keeps boundaries whole: {other} cannot be kept too"


def _ceilings(task: TaskParameters) -> Faults:
    for few, most in (("nFilesPerJob", "nMaxFilesPerJob"), ("nFilesPerMergeJob", "nMaxFilesPerMergeJob")):
        if getattr(task, few) and getattr(task, most) and getattr(task, few) > getattr(task, most):
            yield few, "contradiction", f"{few} {getattr(task, few)} is above {most} {getattr(task, most)}"


def _no_input(task: TaskParameters) -> Faults:
    if not task.noInput:
        return
    if task.nFilesPerJob > 1:
        yield "nFilesPerJob", "contradiction", "a task without input has one pseudo file a job"
    if task.nEventsPerInputFile:
        yield "nEventsPerInputFile", "contradiction", "a task without input has no input files"
    for name in (
        "tgtNumEventsPerJob",
        "groupBoundaryID",
        "respectLB",
        "orderByLB",
        "releasePerLB",
        "workflowHoldup",
        "useRealNumEvents",
        "skipShortInput",
    ):
        if getattr(task, name):
            yield name, "contradiction", f"{name} is about the files of an input, which the task has not"
    if task.nFiles and task.nEvents:
        if not task.nEventsPerJob:
            yield "nEvents", "contradiction", "nFiles says how many jobs; nEvents needs nEventsPerJob"
        elif -(-task.nEvents // task.nEventsPerJob) != task.nFiles:
            yield "nFiles", "contradiction", "nFiles differs from nEvents by nEventsPerJob"


def _short(task: TaskParameters) -> Faults:
    """What is too short is measured by nEventsPerJob."""
    per_job, per_file = task.nEventsPerJob, task.nEventsPerInputFile
    if task.skipShortInput:
        if not per_job:
            yield "skipShortInput", "contradiction", "a short file has fewer events than nEventsPerJob, which is not given"
        elif per_file and per_file < per_job and cuts_events(task) and not task.useRealNumEvents:
            message = f"every file, of {per_file} events, is too short for a job of {per_job}: nothing would be left"
            yield "skipShortInput", "contradiction", message
    if task.skipShortOutput and not (per_job or task.nFilesPerJob):
        yield "skipShortOutput", "contradiction", "a short job has less than nEventsPerJob or nFilesPerJob, and neither is given"


def _places(task: TaskParameters) -> Faults:
    site = {name.strip() for name in task.site.split(",") if name.strip()}
    included, excluded = set(task.includedSite), set(task.excludedSite)
    if both := (site | included) & excluded:
        yield "excludedSite", "contradiction", f"asked for and excluded: {', '.join(sorted(both)[:5])}"
    if site and included and not site & included:
        yield "site", "contradiction", "none of site is in includedSite"


def _binding(task: TaskParameters) -> Faults:
    """Not as the key BINDING says: that may change while the task lives, and its wish would be passed over."""
    if task.bindingAfter and task.binding != "late_after":
        says = f"which is {task.binding}" if task.binding else "which is not given"
        yield "bindingAfter", "contradiction", f"bindingAfter goes with binding late_after; it does not with this task's, {says}"


def _needs(task: TaskParameters) -> Faults:
    if task.ramUnit and task.ramCountUnit and task.ramCountUnit != task.ramUnit:
        yield "ramCountUnit", "contradiction", "ramUnit and ramCountUnit are two names of one thing"
    if task.retryRamMax and not (task.retryRamOffset or task.retryRamStep):
        yield "retryRamMax", "contradiction", "it limits retryRamOffset and retryRamStep, and neither is given"
    if 0 < task.retryRamMax < task.retryRamOffset:
        yield "retryRamMax", "contradiction", f"{task.retryRamMax} is below retryRamOffset {task.retryRamOffset}"


def _endings(task: TaskParameters) -> Faults:
    words = task.termCondition
    if words.strip() and _per_mille(words) is None:
        yield "termCondition", "format", "expected a percentage, as in: 90% of files"
    elif words.strip() and goal_per_mille(task) != _per_mille(words):
        yield "termCondition", "contradiction", "goal says something else"
    path = task.transPath
    if path.startswith("/") or ".." in path.split("/"):
        yield "transPath", "format", "expected a path below the software area, without '..'"


FIRST_YEAR, LAST_YEAR = 2000, 9000
"""Of the end of the rounds of a periodic task."""


def rounds_end(task: TaskParameters) -> datetime | None:
    """When the rounds of a periodic task end, in UTC; None: when it is told to. ValueError for what is none."""
    if not task.periodUntil:
        return None
    end = datetime.fromisoformat(task.periodUntil)
    if not FIRST_YEAR <= end.year <= LAST_YEAR:  # near the ends of the calendar, times cannot be reckoned with
        raise ValueError(f"not from {FIRST_YEAR} to {LAST_YEAR}")
    return end.replace(tzinfo=UTC) if end.tzinfo is None else end.astimezone(UTC)


def _rounds(task: TaskParameters) -> Faults:
    for name in ("periodJobs", "periodUntil"):
        if getattr(task, name) and not task.period:
            yield "period", "required", f"{name} needs period"
    if task.period and not task.noInput:
        yield "period", "contradiction", "a periodic task has no input; set noInput"
    for name in ("nFiles", "nEvents", "goal", "termCondition", "lostFiles", "skipFilesUsedBy") if task.period else ():
        if getattr(task, name):
            yield (
                name,
                "contradiction",
                f"a periodic task ends when it is told to, or by periodUntil; {name} does not go with period",
            )
    try:
        rounds_end(task)
    except ValueError:
        yield "periodUntil", "format", f"expected a time from {FIRST_YEAR} to {LAST_YEAR}, as in: 2027-01-31T12:00:00Z"


def _recovery(task: TaskParameters) -> Faults:
    for name, other in (("lostFiles", "oldDatasetName"), ("oldDatasetName", "lostFiles")):
        if getattr(task, name) and not getattr(task, other):
            yield other, "required", f"{name} needs {other}"
    for name in ("nFiles", "nEvents") if task.lostFiles and not task.noInput else ():
        if getattr(task, name):
            yield name, "contradiction", f"lostFiles says which files are read, and {name} too"
    if task.lostFiles and task.skipFilesUsedBy:
        yield "skipFilesUsedBy", "contradiction", "lostFiles says which files are read, and they were used by the old task"
    for name in ("mergeOutput", "instantiateTmpl", "instantiateTmplSite") if task.lostFiles else ():
        if getattr(task, name):
            yield name, "not_supported_yet", f"{name} and lostFiles together are not supported yet"


_RULES: tuple[Callable[[TaskParameters], Faults], ...] = (
    _event_sizes,
    _ceilings,
    _no_input,
    _short,
    _places,
    _binding,
    _needs,
    _endings,
    _rounds,
    _recovery,
)
