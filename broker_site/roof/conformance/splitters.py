"""The conformance suite of splitters, ours and those of other packages: functions that raise AssertionError.

A splitter puts every piece and event into exactly one job or says why not, keeps the hard limits of queues, gives the same split
for the same question, and cuts the same jobs where it is asked for a few at a time. `check_splitter("lab_runs")` asks all of that
with random questions (`split_trials`); CHECKS has the parts by name. Needs no database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from broker_site.roof.conformance.purity import reaching, watched
from broker_site.roof.conformance.split_trials import SplitTrial, split_trial
from workqueues.splitters.check import BadPlan, check_split
from workqueues.splitters.choice import SPLITTERS, SplitterDeclaration
from workqueues.splitters.protocol import Files, Split

TRIALS = 500
"""Questions that each check asks."""

Job = tuple[tuple[int, ...], int, int, int, int, tuple[Any, ...]]


def check_splitter(name: str, trials: int = TRIALS) -> None:
    """Ask everything of a splitter; AssertionError at the first that does not hold, with the number of the question."""
    for check in CHECKS.values():
        check(SPLITTERS[name], trials)


def declared(splitter: SplitterDeclaration, _trials: int = TRIALS) -> None:
    """It has a sentence, and cuts something."""
    _hold(splitter.doc.strip(), f"the splitter {splitter.name} has no docstring")
    _hold(splitter.kinds, f"the splitter {splitter.name} cuts nothing: name its kinds")


def loses_nothing(splitter: SplitterDeclaration, trials: int = TRIALS) -> None:
    """Every piece and event is in one job, left or dropped with a reason; sums are right and hard budgets kept."""
    for asked in _trials(splitter, trials):
        try:
            check_split(asked.files, asked.limits, asked.most, asked.secondaries, _cut(splitter, asked))
        except BadPlan as bad:
            raise AssertionError(f"{splitter.name} {bad} ({asked})") from bad


def touches_nothing(splitter: SplitterDeclaration, trials: int = TRIALS) -> None:
    """Pure: neither files nor network, no clock, no random numbers."""
    found = reaching(splitter.cut)
    _hold(not found, f"{splitter.name} uses {', '.join(found)}: a splitter sees only what it is given")
    for asked in _trials(splitter, trials):
        _cut(splitter, asked)
        with watched() as touched:
            _cut(splitter, asked)
        _hold(not touched, f"{splitter.name} reaches out of the process: {', '.join(touched)} ({asked})")


def splits_the_same(splitter: SplitterDeclaration, trials: int = TRIALS) -> None:
    """The same question gives the same split, and is left as it was."""
    for asked in _trials(splitter, trials):
        before = deepcopy(asked)
        split = _cut(splitter, asked)
        _hold(asked == before, f"{splitter.name} changes what it is given ({asked})")
        _hold(split == _cut(splitter, before), f"{splitter.name} splits otherwise when it is asked again ({asked})")


def goes_on(splitter: SplitterDeclaration, trials: int = TRIALS) -> None:
    """Cut a job or two at a time, as for the queues that get them in turn, the jobs are those that are cut at once."""
    for asked in _trials(splitter, trials):
        split = splitter.cut(asked.files, asked.rules, asked.limits, None, asked.secondaries)
        at_once = [_job(asked.files, job) for job in split]
        for few in (1, 2):
            _hold(
                _in_blocks(splitter, asked, few) == at_once, f"{splitter.name} cuts other jobs when {few} are asked for ({asked})"
            )


CHECKS: Mapping[str, Callable[[SplitterDeclaration, int], None]] = {
    check.__name__: check for check in (declared, loses_nothing, touches_nothing, splits_the_same, goes_on)
}
"""Every check by its name."""


def _trials(splitter: SplitterDeclaration, count: int) -> Iterator[SplitTrial]:
    return (split_trial(splitter, number) for number in range(count))


def _cut(splitter: SplitterDeclaration, asked: SplitTrial) -> Split:
    """The split; AssertionError with what was raised instead."""
    try:
        return splitter.cut(asked.files, asked.rules, asked.limits, asked.most, asked.secondaries)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise AssertionError(f"{splitter.name} raises {type(error).__name__}: {error} ({asked})") from error


def _in_blocks(splitter: SplitterDeclaration, asked: SplitTrial, few: int) -> list[Job]:
    """The jobs, cut a few at a time out of windows, which grow where they hold too little for one job."""
    found: list[Job] = []
    at, skip, width, secondaries = 0, 0, few, asked.secondaries
    while at < len(asked.files):
        seen = asked.files.window(at, at + width, skip)
        split = splitter.cut(seen, asked.rules, asked.limits, few, secondaries)
        found += [_job(seen, job) for job in split]
        moved = len(seen) - split.left
        if not (moved or split.skip):
            if at + width >= len(asked.files) or split.unfit:
                break
            width *= 2
            continue
        at, skip, secondaries = at + moved, split.skip + (0 if moved else skip), split.secondaries
    return found


def _job(files: Files, job: Any) -> Job:
    """What a job has, by the ids of its files and the events counted in these, wherever the window begins."""
    first = last = 0
    if len(files.firsts):
        first = files.firsts[job.start] + job.skip
        last = files.firsts[job.stop - 1] + (job.upto or files.n_events[job.stop - 1])
    return tuple(files.ids[job.start : job.stop]), first, last, job.n_events, job.size, job.others


def _hold(holds: object, why_not: str) -> None:
    """An `assert` that also holds where Python leaves those out."""
    if not holds:
        raise AssertionError(why_not)
