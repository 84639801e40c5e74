"""Less input in the jobs of a task whose jobs fail with too much of it: half, a quarter, then single files. Pure.

Source: facts on commands and retry 3.6. What the task said before is kept in its split rule (code RM), so that the parts are
those of the beginning, however often they are taken. nGBPerJob is set only where the task sets it: it counts what a
job needs at least, which does not get smaller with its input.
"""

from __future__ import annotations

import re

from workqueues.rules.jobs.lengths import TASK
from workqueues.rules.jobs.split_rule import changed, parse

STEPS = ((2, 2), (4, 4))
"""(From which try on, into how many parts); from LAST on single files."""
LAST = 7
WHOLE_BOUNDARIES = 3
"""From this groupBoundaryID on a job takes no part of a boundary."""
_KEPT = re.compile(r"\bRM=NG:(\d+)/MF:(\d+)")


def parts(attempt_nr: int) -> int | None:
    """Into how many parts what a job takes is cut after so many tries; 1: not at all, None: into single files."""
    if attempt_nr >= LAST:
        return None
    return next((n for since, n in reversed(STEPS) if attempt_nr >= since), 1)


def why_not(rule: str) -> str:
    """Why the input of jobs stays what it is: the task says itself how much a job takes; empty where it does not."""
    rules = parse(rule)
    if rules.events_per_job or rules.files_per_job or rules.target_events:
        return "the task says how many files or events a job takes"
    return "boundaries of its input are kept whole" if rules.boundary >= WHOLE_BOUNDARIES else ""


def reduced(rule: str, n_files: int, attempt_nr: int) -> str:
    """The split rule of the task after a job with so many master files failed at this try."""
    before, n = rule, parts(attempt_nr)
    if n == 1 or why_not(rule):
        return before
    rules = parse(rule)
    if (kept := _KEPT.search(rule)) is not None:
        gb, files = int(kept[1]), int(kept[2])
    else:
        gb, files = rules.gb_per_job or 0, rules.max_files_per_job or max(n_files, 1)
        rule = ",".join(filter(None, [rule, f"RM=NG:{gb}/MF:{files}"]))
    less_gb, less_files = (1, 1) if n is None else (max(gb // n, 1), max(files // n, 1))
    less = changed(rule, "MF", min(less_files, rules.max_files_per_job or less_files))
    if rules.gb_per_job:
        less = changed(less, "NG", min(less_gb, rules.gb_per_job))
    return less if len(less) <= TASK["split_rule"] else before
