"""From a placed part of the input to a job: which files and events it reads, its tries, names of outputs, seed and parameters.

Not here: the numbers that jobs carry (`brokerage.ledger.reservation`), their rows (`brokerage.ledger.generate`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from brokerage.rules.facts.job_kind import JobKind
from brokerage.rules.placement.new_job import DealtFiles, DealtJob, InputUse, JobOutput, NewJob, OutputName, PlacedJob, Seed
from brokerage.rules.placement.usable_input import UsableInput
from workqueues.rules.jobs.command_length import too_long
from workqueues.rules.jobs.event_ranges import InputFile, NewRange
from workqueues.rules.jobs.file_names import middle_name
from workqueues.rules.jobs.job_parameters import STORED_ONCE, JobFill, compiled, compiled_name
from workqueues.rules.jobs.pseudo_files import PREFIX, number_of, seed_value
from workqueues.rules.jobs.recovered_parts import Beginning
from workqueues.splitters.check import BadPlan
from workqueues.splitters.pairs import BoundRow, MasterSpan, Stand
from workqueues.splitters.protocol import JobPlan, SecondaryFiles, SecondaryRow


class MasterInputs(NamedTuple):
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


def whole_files(dataset_id: int, files: Sequence[InputFile]) -> MasterInputs:
    """Files as they are."""
    return MasterInputs(
        [InputUse(f.id, dataset_id, f.attempt_nr, True) for f in files],
        [],
        max([f.attempt_nr for f in files], default=0),
        {f.job_id for f in files if f.job_id},
        [f.lfn for f in files],
        first_event=files[0].first_event or 0 if files else 0,
    )


def cut_files(usable: UsableInput, files: Mapping[int, InputFile], plan: JobPlan, job_id: int) -> MasterInputs:
    """Events of files, by id; of those whose events nobody counted, the whole."""
    dataset_id = usable.dataset.id
    inputs, ranges, lfns = list[InputUse](), list[NewRange](), list[str]()
    previous, tries = set[int](), 0
    for position in range(plan.start, plan.stop):
        piece = usable.pieces[position]
        skip = plan.skip if position == plan.start else 0
        upto = plan.upto if position == plan.stop - 1 and plan.upto else piece.n_events
        file, runs = files[piece.file_id], piece.between(skip, upto)
        lfns.append(file.lfn)
        if not runs:
            inputs.append(InputUse(file.id, dataset_id, file.attempt_nr, True))
        for run in runs:
            events = run.stop - run.first
            ranges.append(NewRange(dataset_id, file.id, job_id, run.first, events, run.attempt_nr, run.failed_attempt))
        for before, job in [(run.attempt_nr, run.previous_job_id) for run in runs] or [(file.attempt_nr, file.job_id)]:
            tries = max(tries, before)
            previous.update([job] if job else ())
    first = usable.pieces[plan.start]
    offset = first.first + plan.skip
    return MasterInputs(inputs, ranges, tries, previous, lfns, offset, (files[first.file_id].first_event or 0) + offset)


def stream_values(lfns: Sequence[str], *, numbered: bool) -> list[str]:
    """What the names of a stream stand for: themselves, or the numbers that records of a sequence have."""
    return [str(number_of(lfn)) for lfn in lfns] if numbered else list(lfns)


@dataclass(frozen=True, slots=True)
class LostNames:
    """Names that jobs give again: those of their files of one dataset, in order, by where the job begins."""

    dataset_id: int = 0
    by_beginning: Mapping[Beginning, Sequence[str]] = field(default_factory=dict)

    def of(self, lfns: Sequence[str], skip: int) -> Iterator[str]:
        """The names for the job with these master files, of the first of which it skips so many events."""
        return iter(self.by_beginning.get((lfns[0], skip), ()) if lfns else ())


NOTHING_LOST = LostNames()


@dataclass(frozen=True, slots=True)
class JobBuilder:
    """What all jobs that are made at once of one dataset have in common.

    `parameters`: the template of the job parameters; `job_ids`, and `seeds` where the task uses them, one a job in order;
    `outputs`: what jobs write, by computing queue; `lost`: names that are given again. `alike`: the template is that which is
    stored with the task.
    """

    task_id: int
    usable: UsableInput
    parameters: str
    job_ids: Sequence[int]
    seeds: Sequence[Seed]
    outputs: Mapping[str, Sequence[JobOutput]]
    lost: LostNames = NOTHING_LOST
    alike: bool = True
    _files: dict[int, InputFile] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.usable.pieces:
            self._files.update((f.id, f) for f in self.usable.files)

    def job(self, i: int, dealt: DealtJob, task_queue_id: int, opens_in: int = 0) -> NewJob:
        """The i-th job; `opens_in` as of NewJob. Raises UnresolvedPlaceholder, BadPlan."""
        placed = dealt.job
        usable, plan, job_id = self.usable, placed.plan, self.job_ids[i]
        if usable.pieces:
            master = cut_files(usable, self._files, plan, job_id)
        else:
            master = whole_files(usable.dataset.id, usable.files[plan.start : plan.stop])
        inputs = master.inputs
        streams = {usable.dataset.stream_name: stream_values(master.lfns, numbered=usable.dataset.type == "pseudo_input")}
        bound = list[tuple[int, int, int]]()
        for other, rows in zip(usable.others, dealt.others, strict=False):
            _deal(other, [row for row, _ in rows], inputs, streams)
            bound += [(row.id, *beside) for row, beside in rows if beside]
        if self.seeds:
            seed = self.seeds[i]
            inputs.append(InputUse(seed.id, seed.dataset_id, seed.attempt_nr, True))
        outputs, parameters, values = self._texts(i, placed, master, streams)
        return NewJob(
            id=job_id,
            computing_queue_id=None if placed.is_open else placed.queue_id,
            queue=placed.queue,
            task_queue_id=task_queue_id,
            storage="" if placed.is_open else placed.storage,
            inputs=inputs,
            outputs=outputs,
            parameters=parameters,
            attempt_nr=1 + master.tries,
            slot=placed.slot,
            kind=usable.kind,
            input_bytes=plan.size,
            n_events=plan.n_events,
            ranges=master.ranges,
            previous_jobs=master.previous,
            values=values,
            bound=bound,
            open_to=placed.places if placed.is_open else (),
            opens_in=opens_in,
        )

    def _texts(
        self, i: int, placed: PlacedJob, master: MasterInputs, streams: dict[str, list[str]]
    ) -> tuple[list[OutputName], str, list[str] | None]:
        """Names of the outputs, and parameters or their values, of the i-th job."""
        outputs, serial, usable = list[OutputName](), 0, self.usable
        middle = middle_name(usable.rules, usable.dataset.dataset_name, master.lfns[0] if master.lfns else "")
        again = self.lost.of(master.lfns, master.skip)
        for output in self.outputs[placed.queue]:
            number = output.first_serial + i
            known = next(again, "") if output.dataset_id == self.lost.dataset_id else ""
            lfn = known or compiled_name(output.pattern).name(number, self.task_id, middle)
            outputs.append(OutputName(output.dataset_id, output.type, lfn, output.optional))
            streams[output.stream_name] = [lfn]
            serial = max(serial, number)
        fill = JobFill(
            task_id=self.task_id,
            serial=serial,
            attempt_nr=1 + master.tries,
            streams=streams,
            seed=seed_value(self.seeds[i].number, usable.rules.random_seed) if self.seeds else None,
            n_events=placed.plan.n_events,
            skip_events=master.skip,
            first_event=master.first_event + usable.rules.first_event if master.lfns else 0,
            middle_name=middle,
        )
        template = compiled(self.parameters)
        values = template.values(fill)
        filled = text = template.line(values)
        if usable.generation.writes_parameters:
            text = usable.generation.parameters(fill, placed.queue, text)
        if wrong := too_long(text):
            raise BadPlan(f"{wrong}: a job with fewer files (nMaxFilesPerJob) has a shorter one")
        # One that is not alike has other sources than jobs before it; after a preprocessing job the task has another template.
        stays = self.alike and usable.kind is not JobKind.PREPROCESS
        once = template.n_constant >= STORED_ONCE and text == filled and stays
        return outputs, "" if once else text, values if once else None

    def written(self, placed: Sequence[DealtJob]) -> Counter[int]:
        """Output dataset -> how many files of it the jobs make; those of all queues to which they may go are there."""
        files = Counter({output.dataset_id: 0 for outputs in self.outputs.values() for output in outputs})
        for queue, n in Counter(p.job.queue for p in placed).items():
            for output in self.outputs[queue]:
                files[output.dataset_id] += n
        return files


def _deal(other: SecondaryFiles, rows: Sequence[SecondaryRow], inputs: list[InputUse], streams: dict[str, list[str]]) -> None:
    """Give a job its files of a secondary dataset."""
    inputs += [InputUse(r.id, r.dataset_id, r.attempt_nr, r.tracked) for r in rows]
    numbered = bool(rows) and rows[0].lfn.startswith(PREFIX)
    streams.setdefault(other.stream_name, []).extend(stream_values([r.lfn for r in rows], numbered=numbered))


def deal(usable: UsableInput, placed: Sequence[PlacedJob]) -> tuple[list[DealtJob], str]:
    """The placed jobs with their files of the secondary datasets, those first that stand beside the master files of a job; and
    why jobs were left out: for them only files are left that belong to other master files.
    """
    if not usable.others:
        return [DealtJob(job) for job in placed], ""
    bound = usable.rules.boundary > 0 and usable.dataset.type != "pseudo_input"
    stands = [
        Stand(other, by_boundary=bound and any(each is not None for each in other.secondary.files.boundaries))
        for other in usable.others
    ]
    dealt, reason = list[DealtJob](), ""
    for job in placed:
        masters = spans(usable, job.plan)
        others = list[Sequence[BoundRow]]()
        for stand, other, portion in zip(stands, usable.others, job.plan.others, strict=False):
            rows = stand.rows_for(masters, portion)
            if rows is None:
                reason = f"all files of {other.secondary.name} that are left belong to other files of the input"
                break
            others.append(rows)
        else:
            dealt.append(DealtJob(job, others))
    return dealt, reason


def spans(usable: UsableInput, plan: JobPlan) -> list[MasterSpan]:
    """The master files of a job, with the events of them that it has."""
    positions = range(plan.start, plan.stop)
    if not usable.pieces:
        return [MasterSpan(usable.files[i].id) for i in positions]
    pieces = [usable.pieces[i] for i in positions]
    masters = [MasterSpan(piece.file_id, piece.first, piece.first + piece.n_events) for piece in pieces]
    if plan.upto:
        masters[-1] = masters[-1]._replace(stop=pieces[-1].first + plan.upto)
    if plan.skip:
        masters[0] = masters[0]._replace(first=pieces[0].first + plan.skip)
    return masters


def dealt_files(others: Sequence[SecondaryFiles], placed: Sequence[DealtJob]) -> list[DealtFiles]:
    """How many files of each secondary dataset that is not used up the jobs get."""
    return [
        DealtFiles(other.dataset_id, sum(p.job.plan.others[n].n for p in placed))
        for n, other in enumerate(others)
        if not other.secondary.rule.tracked
    ]
