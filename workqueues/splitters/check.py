"""What must hold of every split, whoever made it: each piece and event is in one job or left or dropped with a reason.

Asked before anything is written of what splitters of other packages give, and of every splitter by the conformance suite. Soft
limits are not looked at: which job is the smallest is the splitter's to say (decision F3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from workqueues.splitters.costs import Line, lines
from workqueues.splitters.protocol import Dropped, Files, JobLimits, JobPlan, Portion, Secondary, Split


class BadPlan(ValueError):
    """What a splitter or generator of another package gave cannot be used; the message says whose and why."""


class _Part(NamedTuple):
    """Events that a job takes, or that are dropped: as JobPlan has them, and in words whose they are."""

    start: int
    skip: int
    stop: int
    upto: int
    what: str


def check_split(files: Files, limits: JobLimits, most: int | None, secondaries: Sequence[Secondary], split: Split) -> None:
    """Raise BadPlan for a split that loses a piece or event, has one twice, or breaks a hard budget."""
    if fault := next(_faults(files, limits, most, secondaries, split), ""):
        raise BadPlan(fault)


def storable(text: object) -> bool:
    """Whether it is a text that the database can hold."""
    if not isinstance(text, str) or "\x00" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _faults(files: Files, limits: JobLimits, most: int | None, secondaries: Sequence[Secondary], split: Any) -> Iterator[str]:
    """Everything that is wrong; what comes later may not make sense where something came before."""
    yield from _shape(split, most, len(secondaries))
    yield from _tiles(files, split)
    hard = [line for line in lines(limits.budgets, [0], [0]) if line.hard]
    for n, job in enumerate(split.jobs):
        yield from (f"job {n} {fault}" for fault in _of_job(files, hard, secondaries, job))
    for k, secondary in enumerate(secondaries):
        yield from _dealt(secondary, split.secondaries[k], [job.others[k] for job in split.jobs])


def _shape(split: Any, most: int | None, others: int) -> Iterator[str]:
    """The right types, as many jobs as were asked for, and a reason for what is left and what is dropped."""
    if not isinstance(split, Split):
        yield f"gives {type(split).__name__}, not a Split"
    if not all(isinstance(job, JobPlan) and all(type(n) is int and n >= 0 for n in job[:6]) for job in split.jobs):
        yield "gives a job that is not a JobPlan of whole numbers"
    if not all(isinstance(each, Dropped) and all(type(n) is int and n >= 0 for n in each[:3]) for each in split.dropped):
        yield "drops what is not a Dropped of whole numbers"
    if type(split.left) is not int or type(split.skip) is not int or split.skip < 0:
        yield "says with other than whole numbers what is left"
    if most is not None and len(split.jobs) > most:
        yield f"gives {len(split.jobs)} jobs where {most} were asked for"
    if not all(storable(text) for text in (split.reason, *(each.reason for each in split.dropped))):
        yield "gives a reason that is no text"
    if (split.left or split.unfit) and not split.reason:
        yield f"leaves {split.left} pieces without a reason"
    if not all(each.reason for each in split.dropped):
        yield "drops events without a reason"
    if len(split.secondaries) != others or any(len(job.others) != others for job in split.jobs):
        yield f"does not deal out the {others} secondary datasets"


def _tiles(files: Files, split: Split) -> Iterator[str]:
    """From the first piece on every event is in exactly one job or dropped, up to where what is left begins."""
    if not 0 <= split.left <= len(files):
        yield f"leaves {split.left} of {len(files)} pieces"
    jobs = [_Part(job.start, job.skip, job.stop, job.upto, f"job {n}") for n, job in enumerate(split.jobs)]
    if jobs != sorted(jobs):
        yield "gives jobs that are not in the order of their pieces"
    parts = [*jobs, *(_Part(d.position, d.skip, d.position + 1, d.upto, "what it drops") for d in split.dropped)]
    at = (0, 0)
    for part in sorted(parts):
        if part.start >= part.stop or part.stop > len(files):
            yield f"{part.what} has the pieces {part.start} up to {part.stop} of {len(files)}"
        if (part.start, part.skip) != at:
            yield f"{part.what} begins at {_place(part.start, part.skip)}, what came before ends at {_place(*at)}"
        yield from _events(files, part)
        cut = part.upto and part.upto < files.n_events[part.stop - 1]
        at = (part.stop - 1, part.upto) if cut else (part.stop, 0)
    if at != (len(files) - split.left, split.skip):
        yield f"says that what is left begins at {_place(len(files) - split.left, split.skip)}; it is {_place(*at)}"


def _place(piece: int, event: int) -> str:
    return f"piece {piece}, event {event}" if event else f"piece {piece}"


def _events(files: Files, part: _Part) -> Iterator[str]:
    """Only where events are cut may a part begin or end within a piece; and its events are neighbours."""
    if not len(files.firsts):
        if part.skip or part.upto:
            yield f"{part.what} cuts events of files that are used as a whole"
        return
    known, last = files.n_events, part.stop - 1
    stop = part.upto if part.upto and last == part.start else known[part.start]
    if part.upto > known[last] or (part.skip and part.skip >= stop):
        yield f"{part.what} has no events, or more than there are, of the pieces {part.start} to {last}"
    totals = files.totals if len(files.totals) else known
    for a, b in pairwise(range(part.start, part.stop)):
        if files.firsts[a] + known[a] != totals[a] or files.firsts[b] or bool(known[a]) != bool(known[b]):
            yield f"{part.what} has events that are not neighbours, at the pieces {a} and {b}"


def _of_job(files: Files, hard: Sequence[Line], secondaries: Sequence[Secondary], job: JobPlan) -> Iterator[str]:
    """Its sums are right, and it keeps the hard budgets."""
    portion: Any
    last = job.stop - 1
    events = sum(files.n_events[job.start : job.stop]) - job.skip
    events -= files.n_events[last] - job.upto if job.upto else 0
    if events and job.n_events != events:
        yield f"says it has {job.n_events} events; it has {events}"
    size = sum(files.sizes[job.start : job.stop])
    for secondary, portion in zip(secondaries, job.others, strict=True):
        total = len(secondary.files)
        if not (isinstance(portion, Portion) and 0 <= portion.n <= total and 0 <= portion.start <= total):
            yield f"takes {portion} of the {total} files of {secondary.name}"
        size += sum(secondary.files.sizes[k] for k in _taken(portion, total) if len(secondary.files.sizes))
    if job.size != size:
        yield f"says it has {job.size} bytes; it has {size}"
    yield from (f"takes more {line.what} than there is" for line in hard if not line.allows(size, job.n_events))


def _taken(portion: Portion, total: int) -> Iterator[int]:
    return ((portion.start + i) % total for i in range(portion.n))


def _dealt(secondary: Secondary, after: Secondary, portions: Sequence[Portion]) -> Iterator[str]:
    """Files that are used once are in one job, and the dataset is handed on as it stands behind the last."""
    total = len(secondary.files)
    if len(after.files) != total or not 0 <= after.at <= total:
        yield f"does not hand {secondary.name} on"
    if not secondary.rule.repeat and any(portion.start + portion.n > total for portion in portions):
        yield f"goes round in {secondary.name}, which is not repeated"
    if secondary.rule.tracked:
        used = [position for portion in portions for position in _taken(portion, total)]
        if len(set(used)) != len(used):
            yield f"takes a file of {secondary.name} twice"
        bound = any(each is not None for each in secondary.files.boundaries)
        if used and not bound and (min(used) < secondary.at or after.at <= max(used)):
            yield f"takes files of {secondary.name} that jobs took before, or hands on that they may be taken again"
