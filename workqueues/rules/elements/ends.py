"""Which ends of files are told to the parent together, with all that was made of them (row X5; decision J3).

A job joins the files that it used, and a merge job the jobs whose outputs it merged: what hangs together so is settled together
at the parent or not at all, and told once all of it has ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from workqueues.rules.elements.messages import Ends, InputEnd, OutputTold
from workqueues.states import INPUT_FILE

LONGEST_WHY = 510
LONGEST_COMMON = 100
"""Of what is said of each of many files alike."""
MOST_INPUTS = 1000
"""Files of one Ends."""


class EndedFile(NamedTuple):
    """A file of a master dataset of a task, as it stands here. `why`: of a failure, or of the loss."""

    id: int
    lfn: str
    status: str
    why: str = ""


class MadeFile(NamedTuple):
    """An output, and the job that made it. `told`: None: it is nowhere any more. `log`: the log of a job."""

    job_id: int
    lfn: str
    log: bool
    told: OutputTold | None


@dataclass(frozen=True, slots=True)
class Made:
    """What became of the files of a task: who used which, file -> jobs; job -> the jobs that merged its outputs; and outputs."""

    files: Sequence[EndedFile]
    uses: Mapping[int, Sequence[int]] = field(default_factory=dict)
    merges: Mapping[int, Sequence[int]] = field(default_factory=dict)
    outputs: Sequence[MadeFile] = ()


class ToldEnds(NamedTuple):
    """Ends, and the state of each file, by id, for which they speak."""

    ends: Ends
    states: Mapping[int, str]

    @property
    def rows(self) -> int:
        """How many files it names."""
        return len(self.ends.inputs) + len(self.ends.outputs)


def told_ends(made: Made, *, task_ended: bool) -> list[ToldEnds]:
    """The ends that can be told: each group of which every file has ended; all groups once the task has.

    A file of which a finished job's output is lost was used for nothing, so it comes back unused with those beside it.
    """
    outputs: dict[int, list[MadeFile]] = defaultdict(list)
    for output in made.outputs:
        outputs[output.job_id].append(output)
    told = []
    for files, jobs in _groups(made):
        if task_ended or all(file.status in INPUT_FILE.final for file in files):
            told += _ends(files, [output for job in jobs for output in outputs[job]])
    return told


def _ends(files: Sequence[EndedFile], outputs: Sequence[MadeFile]) -> list[ToldEnds]:
    lost = next((output.lfn for output in outputs if output.told is None and not output.log), "")
    if lost:
        ends = [InputEnd(lfn=f.lfn, end="unused", why=f"what was made of it is lost: {lost}"[:LONGEST_WHY]) for f in files]
        there = []
    else:
        ends = [_end(file) for file in files]
        there = [output.told for output in outputs if output.told is not None]
    if there:
        return [ToldEnds(Ends(inputs=ends, outputs=there), {file.id: file.status for file in files})]
    return [  # nothing holds them together
        ToldEnds(Ends(inputs=ends[i : i + MOST_INPUTS]), {file.id: file.status for file in files[i : i + MOST_INPUTS]})
        for i in range(0, len(ends), MOST_INPUTS)
    ]


def _end(file: EndedFile) -> InputEnd:
    if file.status == "finished":
        return InputEnd(lfn=file.lfn, end="finished")
    if file.status == "failed":
        return InputEnd(lfn=file.lfn, end="failed", why=file.why[:LONGEST_WHY])
    why = f"the file is {file.status} here" if file.status in INPUT_FILE.gone else "its task ended without it"
    return InputEnd(lfn=file.lfn, end="unused", why=why)


def come_back(told: ToldEnds, why: str) -> list[ToldEnds]:
    """The same files, all unused, with nothing that was made of them: in parts, as nothing holds them together."""
    lfns, states = [told_input.lfn for told_input in told.ends.inputs], list(told.states.items())
    return [ToldEnds(ends, dict(states[i * MOST_INPUTS : (i + 1) * MOST_INPUTS])) for i, ends in enumerate(unused(lfns, why))]


def unused(lfns: Sequence[str], why: str) -> list[Ends]:
    """Files that come back as they are."""
    parts = [lfns[i : i + MOST_INPUTS] for i in range(0, len(lfns), MOST_INPUTS)]
    return [Ends(inputs=[InputEnd(lfn=lfn, end="unused", why=why[:LONGEST_COMMON]) for lfn in part]) for part in parts]


def _groups(made: Made) -> Iterable[tuple[list[EndedFile], list[int]]]:
    """Files that hang together, in order, with the jobs between them."""
    first: dict[object, object] = {}

    def root(node: object) -> object:
        while (above := first.setdefault(node, node)) != node:
            first[node] = first[above]
            node = above
        return node

    for file in made.files:
        for job in made.uses.get(file.id, ()):
            first[root(("job", job))] = root(file)
    for job, merges in made.merges.items():
        for merge in merges:
            first[root(("job", merge))] = root(("job", job))
    files, jobs = defaultdict[object, list[EndedFile]](list), defaultdict[object, list[int]](list)
    for file in made.files:
        files[root(file)].append(file)
    known = {*(job for used in made.uses.values() for job in used), *made.merges, *(m for ms in made.merges.values() for m in ms)}
    for job in sorted(known):
        jobs[root(("job", job))].append(job)
    return [(group, jobs[at]) for at, group in files.items()]
