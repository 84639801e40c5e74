"""Inputs to which files may still come: which a task follows, and how many new files are given to jobs at once. Pure.

Source: facts on workflows 7.2, rules 3, 5, 8 and 9; facts on datasets 1.2.3; decision E1. Not here: reading the files
(`agents.input_loader`), and what a task does while it waits for more (`ledger.open_inputs`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from workqueues.rules.jobs.pseudo_files import PREFIX
from workqueues.rules.jobs.split_rule import SplitRules

COLLECTED = "collected until there are enough files for more jobs"
"""Why a new file of a running parent is held."""


GROWING_BLOCK = "held until its lumi block is complete"
"""Why a file is held whose lumi block is not released yet."""

ABSENT = "the catalogue does not have it any more"
"""Why a file is held that was not there when its dataset was read again."""


def followed(rules: SplitRules, states: Mapping[str, str], written: Collection[str]) -> frozenset[str]:
    """The inputs to which files may still come, as the task wishes: `states` in the catalogue by name; `written`: those that a
    parent that has not ended writes. Of a task whose input a workflow feeds all, until it is told that they are complete.
    """
    while_open = {name for name, state in states.items() if state == "open"} if rules.run_until_closed else set()
    if rules.held_up:
        return frozenset(states)
    beside_parent = set(states) & set(written) if rules.no_wait_parent else set()
    return frozenset(while_open | beside_parent)


def held_at_first(rules: SplitRules) -> str:
    """Why new files of an input that is followed are held; empty where jobs are made of them at once, or once they are staged."""
    if rules.pre_staging:
        return ""
    return GROWING_BLOCK if rules.release_per_lb else COLLECTED if rules.no_wait_parent else ""


def bunch(rules: SplitRules, most_jobs: int) -> int:
    """How many files are let go together: those of so many jobs (nChunksToWait, else `most_jobs`), of one with noInputPooling;
    never of more than there are scouts, while these are made.
    """
    jobs = 1 if rules.no_input_pooling else rules.chunks_to_wait or most_jobs
    if rules.scouting and rules.n_scouts:
        jobs = min(jobs, rules.n_scouts)
    return jobs * (rules.files_per_job or rules.max_files_per_job or 1)


def let_go(n_held: int, size: int, *, growing: bool) -> int:
    """How many of the held files are let go, the oldest first: whole bunches, and all once no more come."""
    return n_held // size * size if growing else n_held


def growing_blocks(blocks: Collection[int | None], fresh: Collection[int | None]) -> frozenset[int]:
    """The lumi blocks of an input that grows that are not complete: the newest, and those to which files have come since the
    reading before (`fresh`). Nobody says when a block is complete, and files of several may come at the same time.
    """
    numbers = {block for block in blocks if block is not None}
    return frozenset({block for block in fresh if block is not None} | ({max(numbers)} if numbers else set()))


class Round(NamedTuple):
    """What is due of a periodic task: whether jobs are made now, and when it is looked at again (None: its rounds are over)."""

    now: bool
    next_at: datetime | None


def round_due(due: datetime | None, period_s: float, until: datetime | None, now: datetime, *, first: bool) -> Round:
    """What is due: the `first` round at once, others at `due`. Those that were missed are left out; the next is a period after
    this one was due.
    """
    if until is not None and now >= until:
        return Round(False, None)
    is_due = first or (due is not None and due <= now)
    if not is_due:
        return Round(False, due)
    period = timedelta(seconds=period_s)
    following = due + period if due is not None and due + period > now else now + period
    return Round(True, min(following, until) if until is not None else following)


def waiting(names: Sequence[str], *, held_up: bool = False) -> str:
    """Why a task goes on although all known files are through; the records of a periodic task are its rounds."""
    if all(name.startswith(PREFIX) for name in names):
        return "all rounds so far are through; the next one begins when its time has come"
    return f"all files so far are through; {still_open(sorted(names), held_up=held_up)}"


def still_open(names: Sequence[str], *, held_up: bool = False) -> str:
    """That files may come to these datasets; `held_up`: whether or not they are open."""
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
    if held_up:
        return f"new files of {shown} are looked for until somebody says that the input is complete (workflowHoldup)"
    return f"{shown} {'is' if len(names) == 1 else 'are'} still open, and new files are looked for"
