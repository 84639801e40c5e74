"""From placed pieces of input to jobs: requirements, names, parameters; then the ledger writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from broker_site.agency.run import Run
from brokerage.ledger.generate import InputUse, NewJob, OutputName, Requirements, Reserved, generate, reserve, task_queues
from brokerage.queries.places import QueuePlace
from brokerage.rules.ask import Ask
from brokerage.rules.needs import expected_walltime_s, slot_power
from brokerage.rules.slots import Slot, slot
from brokerage.rules.snapshot import Queues
from workqueues.models import Dataset, File, JobParamsTemplate, OutputTemplate, Task
from workqueues.rules.job_parameters import JobFill, compiled, compiled_name
from workqueues.rules.pseudo_files import number_of
from workqueues.rules.seeds import seed_value
from workqueues.rules.split_rule import SplitRules, parse
from workqueues.splitters.protocol import JobPlan


class Placed(NamedTuple):
    """One job to be: the queue it goes to, the queue's row in the snapshot, and its piece of the files."""

    place: QueuePlace
    row: int
    job: JobPlan


def make_jobs(
    run: Run,
    task: Task,
    dataset: Dataset,
    files: Sequence[File],
    placed: Sequence[Placed],
    ask: Ask,
    compensation: float,
    queues: Queues,
    decision_id: int,
) -> None:
    """Make the placed jobs of a claimed task; raises Stale if the claim is gone.

    `ask` as the policy prepared it, `compensation` the factor by which the policy takes its memory.
    """
    if not placed:
        return
    reserved = reserve(run.id, task.id, len(placed))
    slots = [_slot(p, ask, compensation, queues) for p in placed]
    groups = task_queues([_requirements(task, p, s) for p, s in zip(placed, slots, strict=True)])
    naming = _Naming(task, dataset, parse(task.split_rule), reserved)
    jobs = []
    for i, (p, s) in enumerate(zip(placed, slots, strict=True)):
        used = files[p.job.start : p.job.stop]
        outputs, parameters = naming.job(i, used, p.job)
        jobs.append(
            NewJob(
                id=reserved.job_ids[i],
                computing_queue_id=p.place.id,
                task_queue_id=groups[_requirements(task, p, s)],
                storage=p.place.storage,
                inputs=_inputs(used, reserved, i),
                outputs=outputs,
                parameters=parameters,
                attempt_nr=1 + max((f.attempt_nr for f in used), default=0),
                core_count=s.core_count,
                ram_mb=s.ram_mb,
                disk_mb=s.disk_mb,
                walltime_s=s.walltime_s,
                input_bytes=p.job.size,
                n_events=p.job.n_events,
            )
        )
    generate(run.id, task.id, jobs, run.who, decision_id)


def _slot(p: Placed, ask: Ask, compensation: float, queues: Queues) -> Slot:
    own = replace(ask, chunk=replace(ask.chunk, n_events=p.job.n_events))
    walltime = expected_walltime_s(own, slot_power(ask, queues)[p.row : p.row + 1])
    return slot(own, queues, p.row, p.job.size, None if walltime is None else float(walltime[0]), compensation)


def _requirements(task: Task, p: Placed, s: Slot) -> Requirements:
    return Requirements(p.place.id, task.vo, task.prod_source_label, task.work_queue_id or 0, task.gshare, task.resource_type, *s)


def _inputs(used: Sequence[File], reserved: Reserved, i: int) -> list[InputUse]:
    uses = [InputUse(f.id, f.dataset_id, f.attempt_nr, f.keep_track, f.job_id) for f in used]
    if reserved.seeds:
        seed = reserved.seeds[i]
        uses.append(InputUse(seed.id, seed.dataset_id, seed.attempt_nr, True, None))
    return uses


class _Naming:
    """Names and parameters of the jobs of one task: templates compiled once, filled per job."""

    def __init__(self, task: Task, dataset: Dataset, rules: SplitRules, reserved: Reserved) -> None:
        self.task, self.dataset, self.rules, self.reserved = task, dataset, rules, reserved
        self.parameters = compiled(JobParamsTemplate.objects.get(task_id=task.id).job_params_template)
        self.templates = [
            (t, compiled_name(t.filename_template)) for t in OutputTemplate.objects.filter(task_id=task.id).order_by("id")
        ]

    def job(self, i: int, used: Sequence[File], piece: JobPlan) -> tuple[list[OutputName], str]:
        """Outputs and job parameters of the i-th job."""
        outputs, streams, serial = [], self._input_streams(used), 0
        for template, name in self.templates:
            number = self.reserved.first_serial[template.id] + i
            lfn = name.name(number, self.task.id)
            outputs.append(OutputName(template.dataset_id, template.out_type, lfn))
            streams[template.stream_name] = [lfn]
            serial = max(serial, number)
        seed = seed_value(self.reserved.seeds[i].first_event or 0, self.rules.random_seed) if self.reserved.seeds else None
        fill = JobFill(
            task_id=self.task.id,
            serial=serial,
            attempt_nr=1 + max((f.attempt_nr for f in used), default=0),
            streams=streams,
            seed=seed,
            n_events=piece.n_events,
            first_event=(used[0].first_event or 0) + self.rules.first_event if used else 0,
        )
        return outputs, self.parameters.fill(fill)

    def _input_streams(self, used: Sequence[File]) -> dict[str, Sequence[str]]:
        if self.dataset.type == "pseudo_input":
            return {self.dataset.stream_name: [str(number_of(f.lfn)) for f in used]}
        return {self.dataset.stream_name: [f.lfn for f in used]}
