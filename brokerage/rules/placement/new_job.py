"""A job that is to be made: where it runs, what it asks of a slot, its inputs and outputs, its parameters."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from brokerage.rules.facts.job_kind import JobKind
from brokerage.rules.placement.slots import Slot
from workqueues.rules.jobs.event_ranges import NewRange
from workqueues.splitters.pairs import BoundRow
from workqueues.splitters.protocol import JobPlan


class Place(NamedTuple):
    """A queue to which a job may go, with the storage endpoint for its outputs there."""

    queue_id: int
    queue: str
    storage: str


class PlacedJob(NamedTuple):
    """One job to be: the queue it goes to, with the storage endpoint for its outputs, its part of the input, and what it asks of
    a slot.

    `places`: where it may go besides, all of them; `is_open`: it may at once, and its queue is only the first of them; else once
    it has waited.
    """

    queue_id: int
    queue: str
    storage: str
    plan: JobPlan
    slot: Slot
    places: tuple[Place, ...] = ()
    is_open: bool = False


class DealtJob(NamedTuple):
    """A placed job with its files of each secondary dataset."""

    job: PlacedJob
    others: Sequence[Sequence[BoundRow]] = ()


class Seed(NamedTuple):
    """A picked seed: its row in the seed dataset, and its number there. `job_id`: the job that had it before."""

    id: int
    dataset_id: int
    number: int
    attempt_nr: int
    job_id: int | None


class JobOutput(NamedTuple):
    """What each job at a queue writes once: to which dataset, of which type, under a name made of which pattern.

    `first_serial`: the serial number in the name of the first job's file; those of the others follow. `optional`: a job may leave
    it out.
    """

    dataset_id: int
    type: str
    pattern: str
    stream_name: str
    first_serial: int
    optional: bool = False


class InputUse(NamedTuple):
    """One input of a job: the file as it was picked."""

    file_id: int
    dataset_id: int
    attempt_nr: int
    tracked: bool


class OutputName(NamedTuple):
    """One output of a job: dataset, type (output, log) and name; `optional`: the job may leave it out."""

    dataset_id: int
    type: str
    lfn: str
    optional: bool = False


class DealtFiles(NamedTuple):
    """How many files of a secondary dataset were given to jobs."""

    dataset_id: int
    n: int


class NewJob(NamedTuple):
    """One job to make. `slot`: what it asks of a pilot; input in bytes.

    `ranges`: its inputs of which it gets some events only; `inputs` are the others. `previous_jobs`: those that had any of its
    master files before. `values`: what the job puts into the template of the task's job parameters, where that is long;
    `parameters` are empty then. `bound`: files of secondary datasets, each with the master file and event beside which it stands
    from now on. `open_to`: the queues to which it is open, the first of them is `queue`; empty where it has its own.
    `opens_in`: the task queue of open jobs in which it is to wait later; 0 where it keeps its queue.
    """

    id: int
    computing_queue_id: int | None
    queue: str
    task_queue_id: int
    storage: str
    inputs: Sequence[InputUse]
    outputs: Sequence[OutputName]
    parameters: str
    attempt_nr: int
    slot: Slot
    kind: JobKind = JobKind.NORMAL
    input_bytes: int = 0
    n_events: int = 0
    ranges: Sequence[NewRange] = ()
    previous_jobs: Collection[int] = ()
    values: Sequence[str] | None = None
    bound: Sequence[tuple[int, int, int]] = ()
    open_to: Sequence[Place] = ()
    opens_in: int = 0
