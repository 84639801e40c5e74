"""Parameters that do not go together, whether or not each is supported yet (decision F3), and what a task must say besides."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from broker_site.foundation.kernel.verdict import Problem
from workqueues.rules.jobs.lengths import TASK
from workqueues.rules.task_parameters import problem

Values = Mapping[str, Any]
"""Parameters that were given and well typed, by name."""

MOST_RECORDS = 1_000_000
"""Most pseudo files, so jobs, of a task without input."""

_TERM = re.compile(r"\s*(\d{1,3}(?:\.\d+)?)\s*%(?:\s+of\s+(?:the\s+)?(?:files|events|inputs?))?\s*")


def check_together(values: Values) -> list[Problem]:
    """All contradictions among the given values."""
    return [problem(*found) for rule in _RULES for found in rule(values)]


def n_records(values: Values) -> int | None:
    """How many pseudo files a task without input gets: nFiles, else nEvents by nEventsPerJob rounded up; None if neither is
    given.
    """
    if "nFiles" in values:
        return int(values["nFiles"])
    if "nEvents" in values and "nEventsPerJob" in values:
        return -(-int(values["nEvents"]) // int(values["nEventsPerJob"]))
    return None


def cuts_events(values: Values) -> bool:
    """Whether nEventsPerJob cuts input files at events (decision F2), not into whole files of known events."""
    per_job, per_file = values.get("nEventsPerJob"), values.get("nEventsPerInputFile")
    if not per_job or values.get("noInput"):
        return False
    return not per_file or bool(per_job % per_file) or bool(values.get("useRealNumEvents"))


def goal_per_mille(values: Values) -> int | None:
    """The goal times 10, from goal or from the words of termCondition; None if the task has none."""
    if "goal" in values:
        return int(10 * values["goal"])
    words = _TERM.fullmatch(values.get("termCondition", ""))
    return int(10 * float(words[1])) if words and float(words[1]) <= 100 else None


Found = Iterator[tuple[str, str, str]]


def _together(a: str, b: str) -> tuple[str, str, str]:
    return a, "contradiction", f"{a} and {b} do not go together"


def _event_sizes(values: Values) -> Found:
    for other in ("nEventsPerRange", "minGranularity", "tgtNumEventsPerJob", "useJobCloning"):
        if values.get("nEventsPerJob") and values.get(other):
            yield _together("nEventsPerJob", other)
    if values.get("groupBoundaryID") in (3, 4):
        for other in ("nFilesPerJob", "nEventsPerJob", "nGBPerJob", "tgtNumEventsPerJob"):
            if values.get(other):
                yield other, "contradiction", f"groupBoundaryID 3 or 4 keeps boundaries whole: {other} cannot be kept too"


def _ceilings(values: Values) -> Found:
    for few, most in (("nFilesPerJob", "nMaxFilesPerJob"), ("nFilesPerMergeJob", "nMaxFilesPerMergeJob")):
        if values.get(few) and values.get(most) and values[few] > values[most]:
            yield few, "contradiction", f"{few} {values[few]} is above {most} {values[most]}"


def _no_input(values: Values) -> Found:
    if not values.get("noInput"):
        return
    if values.get("nFilesPerJob", 1) > 1:
        yield "nFilesPerJob", "contradiction", "a task without input has one pseudo file a job"
    if values.get("nEventsPerInputFile"):
        yield "nEventsPerInputFile", "contradiction", "a task without input has no input files"
    for name in ("tgtNumEventsPerJob", "groupBoundaryID", "respectLB", "orderByLB", "useRealNumEvents", "skipShortInput"):
        if values.get(name):
            yield name, "contradiction", f"{name} is about the files of an input, which the task has not"
    if "nFiles" in values and "nEvents" in values:
        if "nEventsPerJob" not in values:
            yield "nEvents", "contradiction", "nFiles says how many jobs; nEvents needs nEventsPerJob"
        elif -(-values["nEvents"] // values["nEventsPerJob"]) != values["nFiles"]:
            yield "nFiles", "contradiction", "nFiles differs from nEvents by nEventsPerJob"


def _short(values: Values) -> Found:
    """What is too short is measured by nEventsPerJob."""
    per_job, per_file = values.get("nEventsPerJob"), values.get("nEventsPerInputFile")
    if values.get("skipShortInput"):
        if not per_job:
            yield "skipShortInput", "contradiction", "a short file has fewer events than nEventsPerJob, which is not given"
        elif per_file and per_file < per_job and cuts_events(values) and not values.get("useRealNumEvents"):
            message = f"every file, of {per_file} events, is too short for a job of {per_job}: nothing would be left"
            yield "skipShortInput", "contradiction", message
    if values.get("skipShortOutput") and not (per_job or values.get("nFilesPerJob")):
        yield "skipShortOutput", "contradiction", "a short job has less than nEventsPerJob or nFilesPerJob, and neither is given"


def _places(values: Values) -> Found:
    site = {name.strip() for name in values.get("site", "").split(",") if name.strip()}
    included, excluded = set(values.get("includedSite", ())), set(values.get("excludedSite", ()))
    if both := (site | included) & excluded:
        yield "excludedSite", "contradiction", f"asked for and excluded: {', '.join(sorted(both)[:5])}"
    if site and included and not site & included:
        yield "site", "contradiction", "none of site is in includedSite"


def _needs(values: Values) -> Found:
    if "ramUnit" in values and values.get("ramCountUnit", values["ramUnit"]) != values["ramUnit"]:
        yield "ramCountUnit", "contradiction", "ramUnit and ramCountUnit are two names of one thing"
    architecture = values.get("architecture", "")
    text = architecture if isinstance(architecture, str) else json.dumps(architecture)
    if len(text) > TASK["architecture"]:
        yield "architecture", "length", f"{len(text)} characters, the limit is {TASK['architecture']}"


def _endings(values: Values) -> Found:
    words = values.get("termCondition", "")
    if words.strip() and goal_per_mille({"termCondition": words}) is None:
        yield "termCondition", "format", "expected a percentage, as in: 90% of files"
    elif words.strip() and "goal" in values and goal_per_mille(values) != goal_per_mille({"termCondition": words}):
        yield "termCondition", "contradiction", "goal says something else"
    path = values.get("transPath", "")
    if path.startswith("/") or ".." in path.split("/"):
        yield "transPath", "format", "expected a path below the software area, without '..'"


_RULES: tuple[Callable[[Values], Found], ...] = (
    _event_sizes,
    _ceilings,
    _no_input,
    _short,
    _places,
    _needs,
    _endings,
)
