"""Jobs on events of files, made straight through the ledgers: for tests of what becomes of them, without brokerage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import uuid4

from django.db import transaction

from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.sql.copying import take_ids
from brokerage.ledger.expiry import end_seen
from brokerage.ledger.lease import Lease, lease
from brokerage.ledger.settle import settle_job
from brokerage.models import ComputingQueue, Decision, Job, JobChange, JobInput, JobSpec, TaskQueue
from brokerage.rules.dispatch.settlement import Ending, JobVersion, Report
from tests.builders import grid, pilot, reading, submitted
from tests.flow.steps import let_retry
from workqueues.ledger.claims import claim_tasks, lock_claimed, release
from workqueues.ledger.events import insert_ranges, settle_file_states
from workqueues.ledger.moves import move_task
from workqueues.ledger.picking import give_back_picked, take_files
from workqueues.models import CatalogueDataset, CatalogueFile, Dataset, File, Replica, Task
from workqueues.queries.ranges import free_pieces
from workqueues.rules.jobs.event_ranges import NewRange, Piece


class Part(NamedTuple):
    """Events of a piece that a job takes: from `skip` up to `upto`, counted from the start of the piece."""

    piece: Piece
    skip: int
    upto: int


@dataclass(frozen=True, slots=True)
class Shared:
    """A task whose files are cut by events, and where its jobs run."""

    task: Task
    dataset: Dataset
    queue: ComputingQueue
    task_queue: TaskQueue

    def file(self, number: int = 0) -> File:
        """The file of that number, as it is now."""
        return File.objects.filter(dataset_id=self.dataset.id).order_by("id")[number]


def shared(n_events: Sequence[int], queue: ComputingQueue | None = None, **more: object) -> Shared:
    """A task that reads files with so many events, ready for jobs at `queue` or in a grid of its own."""
    queue = queue or grid("ALPHA")[0]
    made = CatalogueDataset.objects.create(vo="demo", name="cut.data", state="closed")
    for i, n in enumerate(n_events):
        file = CatalogueFile.objects.create(dataset=made, lfn=f"cut.data.{i:06d}", fsize=1000, checksum="00000001", n_events=n)
        Replica.objects.create(file=file, storage="ALPHA_DISK")
    task = submitted(reading("cut", "cut.data", **more))
    for agent in ("refine", "feed", "assign"):
        run_agent(agent, looked=True)
    task.refresh_from_db()
    assert task.status == "ready"
    dataset = Dataset.objects.get(task_id=task.id, type="input")
    group = TaskQueue.objects.create(
        computing_queue=queue, vo="demo", prod_source_label="user", work_queue_id=0, gshare="", resource_type="", core_count=1,
        ram_mb=0, disk_mb=0, walltime_s=0,
    )  # fmt: skip
    return Shared(task, dataset, queue, group)


class Generator:
    """A generator's turn: it claims the task, picks files, gives events to jobs, and gives the rest back."""

    def __init__(self, of: Shared, limit: int = 100) -> None:
        self.of, self.run = of, str(uuid4())
        let_retry()
        claimed = [t.id for t in claim_tasks(self.run, 60, ["ready", "running"], 100)]
        for other in set(claimed) - {of.task.id}:
            release(other, self.run)
        assert of.task.id in claimed
        self.pieces = free_pieces(take_files(self.run, of.task.id, of.dataset.id, limit))

    def give(self, *jobs: Sequence[Part]) -> list[int]:
        """One job for each list of parts."""
        with transaction.atomic():
            task = lock_claimed(self.of.task.id, self.run)
            if task.status == "ready":
                move_task(task, "running", "test", "jobs made", locked_by=self.run, locked_time=task.locked_time)
            Dataset.objects.select_for_update().get(id=self.of.dataset.id)
            ids = take_ids("brokerage_job", len(jobs))
            for job_id, parts in zip(ids, jobs, strict=True):
                self._make(job_id, parts)
            settle_file_states([part.piece.file_id for parts in jobs for part in parts])
        return ids

    def _make(self, job_id: int, parts: Sequence[Part]) -> None:
        of = self.of
        runs = [(part.piece.file_id, run) for part in parts for run in part.piece.between(part.skip, part.upto)]
        Job.objects.create(
            id=job_id, task_id=of.task.id, status="activated", ready_priority=0, task_queue=of.task_queue,
            computing_queue=of.queue, attempt_nr=1 + max(run.attempt_nr for _, run in runs),
        )  # fmt: skip
        decision = Decision.objects.create(
            task_id=of.task.id, policy="test", outcome="assign", n_candidates=1, n_chosen=1, ask={}, record=b"", seed=""
        )
        JobSpec.objects.create(
            job_id=job_id, job_name=f"job.{job_id}", vo="demo", n_input_files=len(runs), decision_id=decision.id
        )
        JobChange.objects.create(job_id=job_id, old="-", new="activated", epoch=0, who="test")
        rows = [
            NewRange(of.dataset.id, file_id, job_id, run.first, run.stop - run.first, run.attempt_nr, run.failed_attempt)
            for file_id, run in runs
        ]
        ranges = insert_ranges(of.task.id, rows)
        JobInput.objects.bulk_create(
            JobInput(job_id=job_id, file_id=file_id, dataset_id=of.dataset.id, event_range_id=range_id, attempt_nr=run.attempt_nr)
            for range_id, (file_id, run) in zip(ranges, runs, strict=True)
        )

    def leave(self) -> None:
        """What was picked and not given goes back, and so does the claim."""
        give_back_picked(self.run, self.of.task.id)
        release(self.of.task.id, self.run)


def cut(of: Shared, size: int, most: int = 1000) -> list[int]:
    """Give all free events of one round to jobs of `size` events of one piece each, at most so many: their ids."""
    generator = Generator(of)
    parts = [
        [Part(piece, at, min(at + size, piece.n_events))] for piece in generator.pieces for at in range(0, piece.n_events, size)
    ][:most]
    made = generator.give(*parts) if parts else []
    generator.leave()
    return made


REPORTS = {
    "finished": Report("finished"),
    "failed": Report("failed", error_code="PAYLOAD_EXIT"),
    "closed": Report("failed", error_code="PILOT_STOPPED"),
}


def lead(job_id: int) -> Lease:
    """Give a waiting job to a pilot."""
    job = Job.objects.select_related("computing_queue").get(id=job_id)
    Job.objects.filter(id=job_id).update(priority=10**6, ready_priority=-(10**6))
    leased = lease([job.task_queue_id], pilot(job.placed_at, str(uuid4())), uuid4(), 60)
    assert leased is not None
    assert leased.job_id == job_id
    return leased


def end(job_id: int, ending: Ending, report: Report | None = None) -> None:
    """End a waiting job, by its pilot's report (`report`: this one) or, cancelled, by a kill."""
    if ending == "cancelled":
        assert end_seen([JobVersion(job_id, 0, "activated")], ending, "test", "test") == 1
        return
    leased = lead(job_id)
    assert settle_job(job_id, leased.epoch, report or REPORTS[ending], "pilot") == ending
