"""Making jobs of a claimed task: input is picked or given up, placed jobs become rows.

The jobs with their inputs, outputs and history go in by COPY in one transaction; the numbers that they carry are reserved before
(`reservation`).
"""

from __future__ import annotations

import gc
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain

from django.contrib.postgres.functions import TransactionNow
from django.db import connection, transaction
from django.db.models import F

from broker_site.foundation import gdpconfig
from broker_site.foundation.kernel.machine import NEW
from broker_site.foundation.sql.copying import cell, copy_lines, escaped
from brokerage.ledger.job_openings import note_openings
from brokerage.ledger.ready_jobs import tell_after_commit
from brokerage.ledger.reservation import outputs_by_queue, reserve
from brokerage.ledger.retry_history import origins, record_followers
from brokerage.ledger.task_queues import keep, open_task_queues, task_queues
from brokerage.ledger.transfers.incomplete_logs import clean_logs
from brokerage.ledger.transfers.new_jobs import AwaitedInput, ask_for_input
from brokerage.models.job import RETRY_RELATION
from brokerage.queries.usable_input import max_files_of, usable_input
from brokerage.rules.facts.job_kind import JobKind
from brokerage.rules.placement.binding import EARLY, Binding, any_of
from brokerage.rules.placement.input_ways import InputWay
from brokerage.rules.placement.job_builder import NOTHING_LOST, JobBuilder, LostNames, dealt_files
from brokerage.rules.placement.memory_turns import MemoryTurns
from brokerage.rules.placement.new_job import DealtFiles, DealtJob, NewJob, Place, PlacedJob
from brokerage.rules.placement.place_jobs import NO_WAYS
from brokerage.rules.placement.slots import Slot
from brokerage.rules.placement.usable_input import UsableInput, files_wanted, most_jobs_of
from brokerage.rules.placement.user_priority import OwnerStanding, job_priorities
from workqueues.ledger.claims import lock_claimed
from workqueues.ledger.events import drop, insert_ranges, settle_file_states
from workqueues.ledger.moves import Stale, move_dataset, move_task
from workqueues.ledger.picking import pause_files, take_files
from workqueues.ledger.secondaries import advance, load_secondaries
from workqueues.models import Dataset, JobParamsTemplate, Task
from workqueues.queries.lost_outputs import recovery_of
from workqueues.rules.jobs.event_ranges import DroppedEvents, NewRange
from workqueues.rules.jobs.sandbox import archive_of
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.refine import planned_parameters, read_task
from workqueues.splitters.protocol import Dropped
from workqueues.states import OUTPUT_TYPES, TASK

NO_NEEDS = AwaitedInput()
MOST_FILES = 50_000
LONGEST_NAME = 230
"""So many characters of the name of its task are in that of a job, before the number with which its tries began."""
MOST_BYTES = 2**63 - 1
"""As many as a column holds: files of the catalogue may claim to be larger together."""


def take_input(run_id: str, task: Task, dataset: Dataset, jobs: int, who: str, turns: MemoryTurns) -> UsableInput:
    """Pick files of a master dataset, and of its secondary ones, for at most so many jobs. Raises NoGenerator, Stale.

    Those whose turn it is not (`turns`) stay picked until they are given back. Files whose partner in a secondary dataset is
    held back wait; those whose partner is lost are given up.
    """
    dataset.refresh_from_db(fields=["n_files_used", "n_files_to_be_used"])  # a dead run's files, and those of jobs, came back
    wanted = files_wanted(parse(task.split_rule).cutting, dataset, max_files_of(task), jobs)
    picked = take_files(run_id, task.id, dataset.id, min(wanted, MOST_FILES))
    files, taken, drained = turns.chosen(picked), len(picked), len(picked) < min(wanted, MOST_FILES)
    usable = usable_input(task, dataset, files, taken=taken, apart=not turns.last, drained=drained)
    if not files:
        return usable
    whole, bound = not usable.pieces, usable.rules.boundary > 0 and dataset.type != "pseudo_input"
    loaded = load_secondaries(run_id, task, dataset, files, most_jobs_of(usable, jobs), whole=whole, bound=bound)
    pause_files(sorted(loaded.waiting), gdpconfig.value("storage", "LOOK_AGAIN", vo=task.vo))
    for file_id, partner in loaded.lost.items():
        drop(run_id, task.id, [DroppedEvents(file_id, 0, 0)], f"it belongs together with {partner}", who)
    if left_out := loaded.left_out:
        files = [f for f in files if f.id not in left_out]
        usable = usable_input(task, dataset, files, taken=taken - len(left_out), apart=not turns.last, drained=drained)
    return replace(usable, others=loaded.secondaries)


def give_up(run_id: str, task_id: int, usable: UsableInput, dropped: Sequence[Dropped], who: str) -> None:
    """Record what no job will ever take, by the task's own rules, with the reason."""
    for reason, rows in usable.dropped_events(dropped).items():
        drop(run_id, task_id, rows, reason, who)


def make_jobs(
    run_id: str,
    task: Task,
    usable: UsableInput,
    placed: Sequence[DealtJob],
    decision_id: int,
    who: str,
    ways: Mapping[str, InputWay] = NO_WAYS,
    owner: OwnerStanding | None = None,
    binding: Binding = EARLY,
) -> None:
    """Make the placed jobs, with the files of secondary datasets that were dealt to them.

    `ways`: how jobs get input that may not be at their queue; `owner`: whose they are, where their priorities depend on that;
    `binding`: when they get their queue. Raises Stale if the claim is gone, NoPlace if serial numbers are used up,
    UnresolvedPlaceholder if a job lacks a value, BadPlan if the generator gives no text.
    """
    if not placed:
        return
    if task.status == "ready":  # its first jobs, or the first of a retry
        clean_logs({task.id, task.parent_tid or task.id}, who)
    with _without_garbage_collection():
        reservation = reserve(run_id, task.id, len(placed))
        outputs = outputs_by_queue(task, reservation.outputs, _queues(placed), who)
        waiting = _waiting_places(task, [p.job for p in placed])
        template = JobParamsTemplate.objects.get(task_id=task.id).job_params_template
        parameters = _command_line(task) or template
        lost = _lost_names(task) if usable.rules.recovery else NOTHING_LOST
        ids, seeds, alike = reservation.job_ids, reservation.seeds, parameters == template
        builder = JobBuilder(task.id, usable, parameters, ids, seeds, outputs, lost, alike=alike)
        jobs = (builder.job(i, p, *waiting(p.job)) for i, p in enumerate(placed))
        cut = [usable.dataset.id] if usable.pieces else []
        dealt = dealt_files(usable.others, placed)
        generate(run_id, task.id, jobs, who, decision_id, builder.written(placed), cut, dealt, ways, owner, binding)


def _waiting_places(task: Task, jobs: Sequence[PlacedJob]) -> Callable[[PlacedJob], tuple[int, int]]:
    """For a job the task queue in which it waits, and the one in which it is to wait later, open; 0: none."""
    of_queues = task_queues(task, {(job.queue_id, job.slot) for job in jobs if not job.is_open})
    slots: dict[tuple[Place, ...], set[Slot]] = defaultdict(set)
    for job in jobs:
        if job.places:
            slots[job.places].add(job.slot)
    opened = {
        places: open_task_queues(task, some, {place.queue_id: (place.queue, place.storage) for place in places})
        for places, some in sorted(slots.items())  # two that make the same ones never wait for each other in a circle
    }

    def waiting(job: PlacedJob) -> tuple[int, int]:
        later = opened[job.places][job.slot] if job.places else 0
        return (later, 0) if job.is_open else (of_queues[job.queue_id, job.slot], later)

    return waiting


def _queues(placed: Sequence[DealtJob]) -> set[str]:
    """All queues at which the jobs may run: the datasets that belong to one are there before a pilot takes an open job."""
    return {p.job.queue for p in placed} | {place.queue for places in {p.job.places for p in placed} for place in places}


def _command_line(task: Task) -> str:
    """The command line of new jobs of a task with sources of its own, which may be others than at its submission; else empty."""
    params = task.params.task_params
    own = archive_of(params) or params.get("sourceURL")
    return planned_parameters(read_task(params)) if own else ""


def _lost_names(task: Task) -> LostNames:
    """The names that the jobs of a task give again that makes lost files."""
    dataset_name = task.params.task_params["oldDatasetName"]
    ours = Dataset.objects.filter(task_id=task.id, dataset_name=dataset_name, type__in=OUTPUT_TYPES)
    return LostNames(ours.values_list("id", flat=True).first() or 0, recovery_of(task).names)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """All that is made is kept to the end, and looking through it for garbage takes a fifth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def generate(
    run_id: str,
    task_id: int,
    jobs: Iterable[NewJob],
    who: str,
    decision_id: int | None,
    written: Mapping[int, int],
    cut: Collection[int] = (),
    dealt: Sequence[DealtFiles] = (),
    ways: Mapping[str, InputWay] = NO_WAYS,
    owner: OwnerStanding | None = None,
    binding: Binding = EARLY,
) -> None:
    """Insert jobs, their inputs picked -> running, their outputs, one history row each; the task starts to run. Jobs are
    activated, or assigned where input must come to their queue, for which they ask.

    `written`: output dataset -> how many files of it the jobs make; `cut`: input datasets of which jobs get ranges. The jobs are
    asked for one by one, while the database takes in those before. Raises Stale, having written nothing, when the claim or one
    of the files is no longer this run's.
    """
    with transaction.atomic():
        needs = NO_NEEDS
        if ways:  # which files are missing is asked for all jobs at once
            jobs = list(jobs)
            needs = ask_for_input(Task.objects.get(id=task_id), jobs, ways, who)
        task = lock_claimed(task_id, run_id)
        locked = {*written, *cut, *(d.dataset_id for d in dealt)}
        datasets = list(Dataset.objects.select_for_update(no_key=True).filter(id__in=sorted(locked)).order_by("id"))
        made: list[NewJob] = []
        copy_lines("brokerage_jobinput", _INPUT, _whole_files(jobs, made))
        _use_inputs(task_id, made)
        if cut:
            _use_ranges(task_id, [r for j in made for r in j.ranges])
        keep({job.task_queue_id for job in made} | {job.opens_in for job in made if job.opens_in})
        _copy_jobs(task, made, decision_id, needs, owner)
        note_openings({job.id: job.opens_in for job in made if job.opens_in}, binding.after_s)
        tell_after_commit(Counter(chain.from_iterable(_pilots_of(job) for job in made if job.id not in needs.awaited)))
        copy_lines("brokerage_jobchange", _CHANGE, _births(made, needs, who, binding.why_early))
        for dataset_id, n in dealt:
            advance(dataset_id, n)
        outputs = ((j.id, output) for j in made for output in j.outputs)
        lines = (
            f"{task_id}\trunning\t{id_}\t{o.dataset_id}\t{o.type}\t{escaped(o.lfn)}\t{'t' if o.optional else 'f'}"
            for id_, o in outputs
        )
        copy_lines("workqueues_file", _OUTPUT, lines)
        count_outputs(datasets, written, who)
        record_followers(task_id, ((old, job.id) for job in made for old in job.previous_jobs), RETRY_RELATION)
        if task.status in TASK.jobless:
            scouts = made[0].kind is JobKind.SCOUT
            started = task.start_time or TransactionNow()  # these jobs were made after it
            claim = {"locked_by": run_id, "locked_time": task.locked_time}
            columns = {"start_time": started, "frozen_time": None, "error_dialog": "", **claim}
            why = f"{len(made)} {'scout' if scouts else 'job'}{'' if len(made) == 1 else 's'} made"
            started_as = "preprocessing" if made[0].kind is JobKind.PREPROCESS else "scouting" if scouts else "running"
            move_task(task, started_as, who, why, **columns)
        else:
            Task.objects.filter(id=task.id).update(frozen_time=None, error_dialog="")


def count_outputs(datasets: Sequence[Dataset], written: Mapping[int, int], who: str) -> None:
    """Locked datasets get so many more files each, which jobs are to make; 0 where open jobs may make some."""
    for dataset in datasets:
        if (n := written.get(dataset.id)) is not None:
            Dataset.objects.filter(id=dataset.id).update(
                n_files=F("n_files") + n, n_files_to_be_used=F("n_files_to_be_used") + n, n_files_used=F("n_files_used") + n
            )
            if dataset.status != "running":
                move_dataset(dataset, "running", who, "jobs write to it")


_JOB = (
    "id", "kind", "computing_queue_id", "storage", "task_queue_id", "core_count", "attempt_nr", "task_id", "status", "priority",
    "ready_priority", "work_queue_id", "resource_type",
)  # fmt: skip
_SPEC = (
    "job_id", "job_parameters", "ram_mb", "disk_mb", "walltime_s", "n_input_files", "input_bytes", "n_events",
    "job_name", "vo", "user_name", "prod_source_label", "processing_type", "working_group", "transformation",
    "software_release", "nucleus", "decision_id", "job_values", "reads_wan",
)  # fmt: skip
_INPUT = ("job_id", "file_id", "dataset_id", "tracked", "attempt_nr", "event_range_id")
_CHANGE = ("job_id", "old", "new", "epoch", "who", "why")
_OUTPUT = ("task_id", "status", "out_job_id", "dataset_id", "type", "lfn", "optional")


def _pilots_of(job: NewJob) -> Iterable[int]:
    """The queues whose pilots may have the job."""
    return [place.queue_id for place in job.open_to] if job.computing_queue_id is None else [job.computing_queue_id]


def _births(jobs: Iterable[NewJob], needs: AwaitedInput, who: str, why_early: str) -> Iterator[str]:
    """The history row of each job."""
    early = f", at once: {why_early}" if why_early else ""
    for j in jobs:
        if n := needs.awaited.get(j.id):
            yield f"{j.id}\t{NEW}\tassigned\t0\t{who}\tmade for {j.queue}, where {n} of its input files must come"
        elif j.open_to:
            yield f"{j.id}\t{NEW}\tactivated\t0\t{who}\tmade for {any_of([place.queue for place in j.open_to])}"
        else:
            yield f"{j.id}\t{NEW}\tactivated\t0\t{who}\tmade for {j.queue}{early}"


def _copy_jobs(
    task: Task, jobs: Sequence[NewJob], decision_id: int | None, needs: AwaitedInput, owner: OwnerStanding | None
) -> None:
    """The narrow and the wide rows; what all jobs of the task have in common is put into text once. They are of one kind."""
    priorities = job_priorities(jobs[0].kind, task.current_priority, len(jobs), owner) if jobs else []
    common = "\t".join(map(cell, (task.work_queue_id, task.resource_type)))
    copy_lines(
        "brokerage_job",
        _JOB,
        (
            f"{j.id}\t{j.kind:d}\t{cell(j.computing_queue_id)}\t{escaped(j.storage)}\t{j.task_queue_id}\t{j.slot.core_count}"
            f"\t{j.attempt_nr}\t{task.id}\t{_turn(priority, j.id in needs.awaited)}\t{common}"
            for j, priority in zip(jobs, priorities, strict=True)
        ),
    )
    release = " ".join(filter(None, [task.trans_uses, task.trans_home]))
    name, origin = escaped(task.task_name[:LONGEST_NAME]), origins({j.id: j.previous_jobs for j in jobs})
    constant = "\t".join(
        map(
            cell,
            (task.vo, task.user_name, task.prod_source_label, task.processing_type, task.working_group, task.trans_path,
             release, task.nucleus, decision_id),
        )
    )  # fmt: skip
    copy_lines(
        "brokerage_jobspec",
        _SPEC,
        (
            f"{j.id}\t{escaped(j.parameters)}\t{j.slot.ram_mb}\t{j.slot.disk_mb}\t{j.slot.walltime_s}"
            f"\t{len(j.inputs) + len(j.ranges)}"
            f"\t{min(j.input_bytes, MOST_BYTES)}\t{j.n_events}\t{name}.{origin.get(j.id, j.id)}\t{constant}"
            f"\t{cell(None if j.values is None else json.dumps(j.values, ensure_ascii=False))}"
            f"\t{'t' if j.id in needs.afar else 'f'}"
            for j in jobs
        ),
    )


def _turn(priority: int, awaits: bool) -> str:
    """State, priority, and place in the order in which jobs are handed out."""
    return f"assigned\t{priority}\t\\N" if awaits else f"activated\t{priority}\t{-priority}"


def _whole_files(jobs: Iterable[NewJob], made: list[NewJob]) -> Iterator[str]:
    """Uses of whole files; the jobs are kept in `made`."""
    for job in jobs:
        made.append(job)
        for file_id, dataset_id, attempt_nr, tracked in job.inputs:
            yield f"{job.id}\t{file_id}\t{dataset_id}\t{'t' if tracked else 'f'}\t{attempt_nr}\t\\N"


def _use_ranges(task_id: int, ranges: Sequence[NewRange]) -> None:
    """Ranges of events with their uses; their files are running, or ready where events are left."""
    ids = insert_ranges(task_id, ranges)
    copy_lines(
        "brokerage_jobinput",
        _INPUT,
        (f"{r.job_id}\t{r.file_id}\t{r.dataset_id}\tt\t{r.attempt_nr}\t{id_}" for r, id_ in zip(ranges, ids, strict=True)),
    )
    settle_file_states(sorted({r.file_id for r in ranges}))


_PICKED = """
WHERE i.job_id = ANY (%(jobs)s) AND i.tracked AND f.id = i.file_id AND f.task_id = %(task)s AND f.status = 'picked'
    AND f.id BETWEEN %(least)s AND %(most)s
"""
_USE = f"""
UPDATE workqueues_file f SET status = 'running', job_id = i.job_id, last_attempt_time = now() FROM brokerage_jobinput i {_PICKED}
"""
_USE_AND_BIND = f"""
UPDATE workqueues_file f SET status = 'running', job_id = i.job_id, last_attempt_time = now(),
    beside_file = coalesce(b.beside, f.beside_file), beside_event = coalesce(b.event, f.beside_event)
FROM brokerage_jobinput i LEFT JOIN unnest(%(files)s::bigint[], %(beside)s::bigint[], %(events)s::int[]) AS b(id, beside, event)
    ON b.id = i.file_id {_PICKED}
"""


def _use_inputs(task_id: int, jobs: Sequence[NewJob]) -> None:
    """Tracked inputs: picked -> running; files of secondary datasets are bound to the files beside which they were given. They
    are found by their uses, which stand already.

    The bounds of their ids let the database read no more of a large table than where they are.
    """
    tracked = [u.file_id for j in jobs for u in j.inputs if u.tracked]
    if not tracked:
        return
    bound = list(zip(*[b for j in jobs for b in j.bound], strict=True))
    values: dict[str, int | list[int]] = {
        "jobs": [j.id for j in jobs], "task": task_id, "least": min(tracked), "most": max(tracked),
        **dict(zip(("files", "beside", "events"), map(list, bound), strict=False)),
    }  # fmt: skip
    with connection.cursor() as cursor:
        if bound:
            cursor.execute(_USE_AND_BIND, values)
        else:
            cursor.execute(_USE, values)
        if cursor.rowcount != len(tracked):
            raise Stale(f"{len(tracked) - cursor.rowcount} of {len(tracked)} files are no longer picked")
