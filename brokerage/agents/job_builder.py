"""From placed pieces of input to jobs: requirements, names, parameters; then the ledger writes them."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from broker_site.foundation.agency.run import Run
from brokerage.ledger.generate import Dealt, InputUse, NewJob, OutputName, generate
from brokerage.ledger.reservation import Requirements, Reserved, reserve, task_queues
from brokerage.queries.queue_places_sql import QueuePlace
from brokerage.queries.usable_input import InputFile, UsableInput
from brokerage.rules.facts.ask import Ask
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.placement.slots import Slot, SlotsAt
from workqueues.ledger.events import NewRange
from workqueues.ledger.outputs import concrete_datasets
from workqueues.models import JobParamsTemplate, OutputTemplate, Task
from workqueues.queries.secondaries import SecondaryRow
from workqueues.rules.jobs.job_parameters import JobFill, compiled, compiled_name
from workqueues.rules.jobs.middle_names import middle_name
from workqueues.rules.jobs.pseudo_files import PREFIX, number_of
from workqueues.rules.jobs.seeds import seed_value
from workqueues.splitters.protocol import JobPlan


class JobAtQueue(NamedTuple):
    """One job to be: the queue it goes to, the queue's row in the snapshot, and its part of the input."""

    place: QueuePlace
    row: int
    job: JobPlan


class PreparedAsk(NamedTuple):
    """What was asked, as the policy prepared it; the factor by which the policy takes its memory; the table it was asked of."""

    ask: Ask
    compensation: float
    queues: Queues


class JobInputs(NamedTuple):
    """What a job gets of the master dataset: whole files, and ranges of events of others.

    `tries`: the most that any of it had before; `previous`: jobs that had any of it. `lfns` of all its files; `skip`: events of
    the first file that are not the job's; `first_event`: number of its first event, where that is counted.
    """

    inputs: list[InputUse]
    ranges: list[NewRange]
    tries: int
    previous: set[int]
    lfns: list[str]
    skip: int = 0
    first_event: int = 0


def make_jobs(
    run: Run, task: Task, there: UsableInput, placed: Sequence[JobAtQueue], asked: PreparedAsk, decision_id: int
) -> None:
    """Make the placed jobs of a claimed task; raises Stale if the claim is gone, UnresolvedPlaceholder if a job lacks a value,
    BadPlan if the generator gives no text."""
    if not placed:
        return
    with _collected_later():
        _make(run, task, there, placed, asked, decision_id)


@contextmanager
def _collected_later() -> Iterator[None]:
    """Look for no garbage meanwhile: all that is made is kept to the end, and looking through it takes a fifth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _make(run: Run, task: Task, there: UsableInput, placed: Sequence[JobAtQueue], asked: PreparedAsk, decision_id: int) -> None:
    reserved = reserve(run.id, task.id, len(placed))
    maker = _Maker(task, there, asked, reserved, run.who)
    slots = [maker.slot(p) for p in placed]
    kinds = {kind: _requirements(task, *kind) for kind in {(p.place.id, s) for p, s in zip(placed, slots, strict=True)}}
    known = task_queues(list(kinds.values()))
    jobs = (maker.job(i, p, s, known[kinds[p.place.id, s]]) for i, (p, s) in enumerate(zip(placed, slots, strict=True)))
    cut = [there.dataset.id] if there.pieces else []
    generate(run.id, task.id, jobs, run.who, decision_id, maker.written(placed), cut, dealt(there, placed))


def dealt(there: UsableInput, placed: Sequence[JobAtQueue]) -> list[Dealt]:
    """How many files of each secondary dataset that is not used up were dealt out to the jobs."""
    return [
        Dealt(other.dataset_id, sum(p.job.others[n].n for p in placed))
        for n, other in enumerate(there.others)
        if not other.secondary.rule.tracked
    ]


def _requirements(task: Task, queue_id: int, s: Slot) -> Requirements:
    return Requirements(queue_id, task.vo, task.prod_source_label, task.work_queue_id or 0, task.gshare, task.resource_type, *s)


@dataclass(slots=True)
class _Maker:
    """What all jobs of one round have in common: templates compiled once, filled per job."""

    task: Task
    there: UsableInput
    asked: PreparedAsk
    reserved: Reserved
    who: str
    _slots: dict[int, SlotsAt] = field(default_factory=dict)
    _outputs: dict[str, list[tuple[OutputTemplate, int]]] = field(default_factory=dict)
    _templates: list[OutputTemplate] = field(init=False)
    _template: str = field(init=False)
    _by_id: dict[int, InputFile] = field(init=False)

    def __post_init__(self) -> None:
        self._template = JobParamsTemplate.objects.get(task_id=self.task.id).job_params_template
        self._templates = list(OutputTemplate.objects.filter(task_id=self.task.id).order_by("id"))
        self._by_id = {f.id: f for f in self.there.files} if self.there.pieces else {}

    def slot(self, p: JobAtQueue) -> Slot:
        """What the job asks of a pilot."""
        if p.row not in self._slots:
            self._slots[p.row] = SlotsAt(self.asked.ask, self.asked.queues, p.row, self.asked.compensation)
        return self._slots[p.row].of(p.job.size, p.job.n_events)

    def job(self, i: int, p: JobAtQueue, s: Slot, task_queue_id: int) -> NewJob:
        """The i-th job."""
        job_id = self.reserved.job_ids[i]
        got = self._cut(job_id, p.job) if self.there.pieces else self._whole(p.job)
        inputs, previous, attempt_nr = got.inputs, got.previous, 1 + got.tries
        streams = self._streams(got.lfns)
        for n, portion in enumerate(p.job.others):
            previous |= self._deal(n, portion.start, portion.n, inputs, streams)
        if self.reserved.seeds:
            seed = self.reserved.seeds[i]
            inputs.append(InputUse(seed.id, seed.dataset_id, seed.attempt_nr, True))
        outputs, parameters = self._written(i, p, got, streams)
        return NewJob(
            id=job_id,
            computing_queue_id=p.place.id,
            task_queue_id=task_queue_id,
            storage=p.place.storage,
            inputs=inputs,
            outputs=outputs,
            parameters=parameters,
            attempt_nr=attempt_nr,
            core_count=s.core_count,
            ram_mb=s.ram_mb,
            disk_mb=s.disk_mb,
            walltime_s=s.walltime_s,
            input_bytes=p.job.size,
            n_events=p.job.n_events,
            ranges=got.ranges,
            previous_jobs=previous,
        )

    def written(self, placed: Sequence[JobAtQueue]) -> Counter[int]:
        """Output dataset -> how many files of it the jobs make."""
        queues = Counter(p.place.name for p in placed)
        return sum((Counter({dataset: n}) for queue, n in queues.items() for _, dataset in self._outputs_at(queue)), Counter())

    def _whole(self, job: JobPlan) -> JobInputs:
        """Files as they are."""
        files = self.there.files[job.start : job.stop]
        dataset_id = self.there.dataset.id
        return JobInputs(
            [InputUse(f.id, dataset_id, f.attempt_nr, True) for f in files],
            [],
            max([f.attempt_nr for f in files], default=0),
            {f.job_id for f in files if f.job_id},
            [f.lfn for f in files],
            first_event=files[0].first_event or 0 if files else 0,
        )

    def _cut(self, job_id: int, job: JobPlan) -> JobInputs:
        """Events of files; of those whose events nobody counted, the whole."""
        dataset_id = self.there.dataset.id
        got = JobInputs([], [], 0, set(), [])
        for position in range(job.start, job.stop):
            piece = self.there.pieces[position]
            skip = job.skip if position == job.start else 0
            upto = job.upto if position == job.stop - 1 and job.upto else piece.n_events
            file, runs = self._by_id[piece.file_id], piece.between(skip, upto)
            if position == job.start:
                got = got._replace(skip=piece.first + skip, first_event=(file.first_event or 0) + piece.first + skip)
            got.lfns.append(file.lfn)
            if not runs:
                got.inputs.append(InputUse(file.id, dataset_id, file.attempt_nr, True))
            for run in runs:
                events = run.stop - run.first
                got.ranges.append(NewRange(dataset_id, file.id, job_id, run.first, events, run.attempt_nr, run.failed_attempt))
            before = [(run.attempt_nr, run.previous_job_id) for run in runs] or [(file.attempt_nr, file.job_id)]
            got.previous.update(previous for _, previous in before if previous)
            got = got._replace(tries=max(got.tries, *(tries for tries, _ in before)))
        return got

    def _deal(self, n: int, start: int, count: int, inputs: list[InputUse], streams: dict[str, list[str]]) -> set[int]:
        """Give a job its files of the n-th secondary dataset; the jobs that had any of them before, where used once."""
        other = self.there.others[n]
        rows = [other.rows[(start + i) % len(other.rows)] for i in range(count)]
        inputs += [InputUse(r.id, r.dataset_id, r.attempt_nr, r.tracked) for r in rows]
        names = [str(number_of(r.lfn)) if _numbered(rows) else r.lfn for r in rows]
        streams.setdefault(other.stream_name, []).extend(names)
        return {r.job_id for r in rows if r.tracked and r.job_id}

    def _streams(self, lfns: list[str]) -> dict[str, list[str]]:
        dataset = self.there.dataset
        return {dataset.stream_name: [str(number_of(lfn)) for lfn in lfns] if dataset.type == "pseudo_input" else lfns}

    def _written(self, i: int, p: JobAtQueue, got: JobInputs, streams: dict[str, list[str]]) -> tuple[list[OutputName], str]:
        """Outputs and job parameters of the i-th job."""
        outputs, serial, rules = [], 0, self.there.rules
        middle = middle_name(rules, self.there.dataset.dataset_name, got.lfns[0] if got.lfns else "")
        for template, dataset_id in self._outputs_at(p.place.name):
            number = self.reserved.first_serial[template.id] + i
            lfn = compiled_name(template.filename_template).name(number, self.task.id, middle)
            outputs.append(OutputName(dataset_id, template.out_type, lfn))
            streams[template.stream_name] = [lfn]
            serial = max(serial, number)
        seed = seed_value(self.reserved.seeds[i].number, rules.random_seed) if self.reserved.seeds else None
        fill = JobFill(
            task_id=self.task.id,
            serial=serial,
            attempt_nr=1 + got.tries,
            streams=streams,
            seed=seed,
            n_events=p.job.n_events,
            skip_events=got.skip,
            first_event=got.first_event + rules.first_event if got.lfns else 0,
            middle_name=middle,
        )
        text = compiled(self._template).fill(fill)
        if self.there.generation.writes_parameters:
            text = self.there.generation.parameters(fill, p.place.name, text)
        return outputs, text

    def _outputs_at(self, queue: str) -> list[tuple[OutputTemplate, int]]:
        """The templates, each with the dataset that jobs of this queue write to."""
        if queue not in self._outputs:
            datasets = concrete_datasets(self.task, [t.dataset_id for t in self._templates], queue, self.who)
            self._outputs[queue] = [(t, datasets[t.dataset_id].id) for t in self._templates]
        return self._outputs[queue]


def _numbered(rows: Sequence[SecondaryRow]) -> bool:
    """Whether the files stand for numbers, as those of a sequence do."""
    return bool(rows) and rows[0].lfn.startswith(PREFIX)
