"""What feeding a task's inputs comes to: which files each dataset gives, in which order, and whether the task can go on.

Source: facts on datasets 1.1.3, 1.2.4; facts on workflows 7.2.9; facts on splitting 8.2, 8.3; seed 001, nFiles and nEvents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Literal, NamedTuple

from workqueues.rules.jobs.file_names import fields_of
from workqueues.rules.jobs.split_rule import SplitRules


class NewFile(NamedTuple):
    """One file as the catalogue or a pseudo dataset gives it. Size in bytes; None where unknown.

    `first_event`: number of its first event in the task, from 1 on, without the task's offset.
    """

    lfn: str
    size: int | None = None
    checksum: str = ""
    guid: str = ""
    n_events: int | None = None
    boundary_id: int | None = None
    lumi_block_nr: int | None = None
    first_event: int | None = None


def counted(files: Sequence[NewFile], per_file: int | None, real: bool) -> list[NewFile]:
    """The files with the events that count: `per_file`, if given, else those of the catalogue; the other way round if `real`."""
    if not per_file:
        return list(files)
    return [f._replace(n_events=per_file if f.n_events is None or not real else f.n_events) for f in files]


def ordered(files: Sequence[NewFile], rules: SplitRules, shuffle: Random | None = None) -> list[NewFile]:
    """The files in the order in which they are used: `shuffle`d, else those of one boundary and one lumi block together, where
    these bind jobs, else as they came. Files without either come last.
    """
    if shuffle is not None:
        mixed = list(files)
        shuffle.shuffle(mixed)
        return mixed
    by_boundary, by_lumi = bool(rules.boundary), rules.respect_lb or rules.order_by_lb
    if not (by_boundary or by_lumi):
        return list(files)
    return sorted(files, key=lambda f: (_last(f.boundary_id) if by_boundary else (), _last(f.lumi_block_nr) if by_lumi else ()))


def by_name_fields(files: Sequence[NewFile], rules: SplitRules, known: Sequence[NewFile] = ()) -> list[NewFile]:
    """The files with a boundary for each middle name that they give, so that a job keeps to one (addNthFieldToLFN of files).

    Files that are `known` have theirs, which stand for the same names.
    """
    names = [fields_of(f.lfn, rules.name_fields) for f in files]
    numbers = {fields_of(f.lfn, rules.name_fields): f.boundary_id or 0 for f in known}
    fresh = sorted({name for name in names if name not in numbers})
    numbers |= {name: i for i, name in enumerate(fresh, start=1 + max(numbers.values(), default=0))}
    return [f._replace(boundary_id=numbers[name]) for f, name in zip(files, names, strict=True)]


def used_part(events: Sequence[int | None], n_files: int | None, n_events: int | None) -> int | None:
    """How many files from the first on a task uses that asked for `n_files` files and `n_events` events (None: all of them).

    `events`: events of each file in order, None where unknown. The file in which the last wanted event lies is used. None: the
    task asked for events and a file that would be needed has no known number.
    """
    most = len(events) if n_files is None else min(len(events), n_files)
    if n_events is None:
        return most
    total = 0
    for i in range(most):
        if total >= n_events:
            return i
        of_file = events[i]
        if of_file is None:
            return None
        total += of_file
    return most


def cut_to(files: Sequence[NewFile], n_events: int) -> list[NewFile]:
    """The files, all of known events, with the last one giving only what is left of `n_events`."""
    before = sum(f.n_events or 0 for f in files[:-1])
    return [*files[:-1], *(f._replace(n_events=min(f.n_events or 0, n_events - before)) for f in files[-1:])]


def with_events(files: Sequence[NewFile]) -> list[NewFile]:
    """The files without those of no event, of which nothing can be cut."""
    return [f for f in files if f.n_events != 0]


def whole_jobs(files: Sequence[NewFile], per_job: int) -> list[NewFile]:
    """The files with as many events as make whole jobs of `per_job` (skipShortInput); those with fewer are left out."""
    return [f._replace(n_events=rounded) for f in files if (rounded := (f.n_events or 0) // per_job * per_job)]


def numbered(files: Iterable[NewFile], before: int | None = 0) -> Iterator[NewFile]:
    """The files with the number of their first event, behind `before` events; None from where a number is not known."""
    for file in files:
        yield file._replace(first_event=None if before is None else 1 + before)
        before = None if before is None or file.n_events is None else before + file.n_events


def events_after(files: Sequence[NewFile], before: int | None) -> int | None:
    """Events of these files and of those before; None if one is not known."""
    known = [f.n_events for f in files]
    return None if before is None or None in known else before + sum(n or 0 for n in known)


def index_of(lfn: str) -> str:
    """The number of a file in its dataset: the digits behind `._`, else the last digits of the name, an attempt behind it left
    out; empty without digits.
    """
    if number := re.search(r"\._0*(\d+)", lfn):
        return number[1]
    runs = re.findall(r"\d+", re.sub(r"\.\d{1,2}$", "", lfn)) or re.findall(r"\d+", lfn)
    return (runs[-1].lstrip("0") or "0") if runs else ""


def shared_indexes(datasets: Sequence[Sequence[NewFile]]) -> frozenset[str]:
    """The numbers of files that every one of the datasets has (indexConsistent)."""
    return frozenset.intersection(*(frozenset(index_of(f.lfn) for f in files) for files in datasets))


def most_jobs(files: Sequence[NewFile], rules: SplitRules) -> int:
    """The largest number of jobs that these master files can be in at one time: one a file, or one a run of events.

    Events that a queue's limits cut into more, smaller jobs are counted twice over.
    """
    if rules.target_events or rules.events_per_job:
        size = rules.events_per_job or rules.target_events or 1
        return 2 * sum(-(-(f.n_events or 0) // size) for f in files)
    return len(files)


class LoadedInputs(NamedTuple):
    """Files of the masters that may be used, the names of secondary datasets without any, and how many files of the masters were
    left out; how many files are new, or ready now, and the datasets to which more may come. `used_before`: files of the masters
    that were left out since other tasks had used them.
    """

    usable: int
    empty: Sequence[str] = ()
    without_events: int = 0
    new: int = 0
    growing: Sequence[str] = ()
    used_before: int = 0


class AfterFeeding(NamedTuple):
    """Where a task goes: on, pending, to its end at once, or tobroken; `lack`: what it lacks, in words."""

    way: Literal["go", "wait", "finish", "break"]
    lack: str = ""


def after_feeding(inputs: LoadedInputs, rules: SplitRules, *, still_open: bool = False) -> AfterFeeding:
    """Where a task goes with these inputs: one that lacks files of a secondary dataset can make no job either.

    `still_open`: files may still come to a dataset.
    """
    if inputs.usable and not inputs.empty:
        return AfterFeeding("go")
    if inputs.usable:
        lack = f"the secondary dataset {inputs.empty[0]} has no files"
    elif rules.skip_short_input:
        lack = f"the input has no files of {rules.events_per_job} events or more, and skipShortInput leaves the others out"
    elif inputs.without_events:
        n = inputs.without_events
        lack = "the only file of the input has no events" if n == 1 else f"the {n:,} files of the input have no events"
    elif inputs.used_before:
        lack = f"the input has no files but {inputs.used_before:,} that tasks of skipFilesUsedBy have used"
    else:
        lack = "the input has no files"
    if inputs.growing or (rules.wait_input and still_open):
        return AfterFeeding("wait", f"{lack} yet")
    return AfterFeeding("finish" if rules.allow_empty_input else "break", lack)


def _last(number: int | None) -> tuple[bool, int]:
    """A key that puts what has no number behind the others."""
    return number is None, number or 0
