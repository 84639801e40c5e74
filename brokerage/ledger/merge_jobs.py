"""Making jobs that merge outputs of other jobs of their task, where these are (row J8).

No brokerage decides on them: they run at the queue of the jobs whose outputs they merge. Not here: which outputs go together
(`rules.placement.merge_groups`), what their ends mean (`merged_jobs`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

from django.db import connection, transaction

from broker_site.foundation import gdpconfig
from broker_site.foundation.kernel.machine import NEW
from brokerage.ledger.generate import LONGEST_NAME, count_outputs
from brokerage.ledger.ready_jobs import tell_after_commit
from brokerage.ledger.reservation import outputs_by_queue, reserve
from brokerage.ledger.retry_history import origins, record_followers
from brokerage.ledger.task_queues import keep, task_queues
from brokerage.models import Job, JobChange, JobInput, JobSpec
from brokerage.models.job import MERGE_RELATION
from brokerage.rules.facts.job_kind import JobKind
from brokerage.rules.placement.merge_groups import PRIORITY, PremergedFile, merge_slot
from brokerage.rules.placement.new_job import JobOutput
from brokerage.rules.placement.slots import Slot
from workqueues.ledger.claims import lock_claimed
from workqueues.ledger.moves import Stale
from workqueues.models import Dataset, File, Task
from workqueues.rules.jobs.job_parameters import JobFill, compiled, compiled_name
from workqueues.rules.jobs.merge_parameters import DEFAULT, DEFAULT_WITH_LOGS, TRANSFORMATION, merge_template
from workqueues.rules.jobs.premerged import MERGE_LOG_STREAM, stream_name
from workqueues.rules.jobs.resource_type import resource_type
from workqueues.rules.jobs.sandbox import merge_parameters

PROCESSING_TYPE = "pmerge"


@dataclass(frozen=True, slots=True)
class MergeGroup:
    """What one merge job gets: files of these jobs, at a queue with its limits (0: none), and the storage that has them."""

    queue_id: int
    queue: str
    storage: str
    merged_ids: Sequence[int]
    files: Sequence[PremergedFile]
    maxrss: float = 0
    maxwdir: float = 0

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def slot(self, task: Task) -> Slot:
        """What its job asks of a pilot."""
        cores, ram = task.merge_core_count or 0, max(task.merge_ram_count or 0, *(file.ram_mb for file in self.files))
        return merge_slot(self.size, cores=cores, ram_mb=ram, maxrss=self.maxrss, maxwdir=self.maxwdir)


@dataclass(frozen=True, slots=True)
class _MergeJob:
    """A merge job to be: its number, its task queue, and what it writes."""

    id: int
    group: MergeGroup
    slot: Slot
    task_queue_id: int
    outputs: Sequence[File]
    parameters: str

    @property
    def tries(self) -> int:
        return max(file.tries for file in self.group.files)


def make_merge_jobs(run_id: str, task: Task, groups: Sequence[MergeGroup], who: str) -> int:
    """Make a merge job of each group for a claimed task: how many. Raises Stale if the claim is gone, or files moved meanwhile,
    and NoPlace if serial numbers are used up.
    """
    reservation = reserve(run_id, task.id, len(groups), merging=True)
    written = outputs_by_queue(task, reservation.outputs, {group.queue for group in groups}, who)
    slots = [group.slot(task) for group in groups]
    queues = _task_queues(task, groups, slots)
    jobs = [
        _merge_job(task, i, job_id, group, slot, queues[group.queue_id, slot], written[group.queue])
        for i, (job_id, group, slot) in enumerate(zip(reservation.job_ids, groups, slots, strict=True))
    ]
    with transaction.atomic():
        _insert(run_id, task, jobs, who)
    return len(jobs)


def _task_queues(task: Task, groups: Sequence[MergeGroup], slots: Sequence[Slot]) -> dict[tuple[int, Slot], int]:
    queues: dict[tuple[int, Slot], int] = {}
    for slot in dict.fromkeys(slots):
        like = copy(task)
        like.resource_type = _resources(task, slot)
        queues |= task_queues(like, {(group.queue_id, slot) for group, asked in zip(groups, slots, strict=True) if asked == slot})
    return queues


def _resources(task: Task, slot: Slot) -> str:
    compensation = gdpconfig.value("jobbroker", "MEMORY_COMPENSATION", vo=task.vo)
    return resource_type(slot.core_count, slot.ram_mb, "MB", 0, compensation=compensation)


def _merge_job(
    task: Task, i: int, job_id: int, group: MergeGroup, slot: Slot, task_queue_id: int, written: Sequence[JobOutput]
) -> _MergeJob:
    """The i-th of them. Names of its outputs say nothing of its inputs."""
    streams = {output.stream_name: [compiled_name(output.pattern).name(output.first_serial + i, task.id)] for output in written}
    outputs = [
        File(
            task_id=task.id, dataset_id=output.dataset_id, type=output.type, lfn=streams[output.stream_name][0], status="running",
            out_job_id=job_id, optional=output.optional, n_events=_known_events(group, output.stream_name),
        )
        for output in written
    ]  # fmt: skip
    made = {file.stream for file in group.files}
    for stream in made:
        streams[stream_name(stream)] = [file.lfn for file in group.files if file.stream == stream]
    every = [output.stream_name for output in written]
    default = DEFAULT_WITH_LOGS if MERGE_LOG_STREAM in every else DEFAULT
    text = merge_parameters(task.params.task_params) or default
    fill = JobFill(
        task_id=task.id,
        serial=max(output.first_serial + i for output in written),
        attempt_nr=1 + max(file.tries for file in group.files),
        streams=streams,
        n_events=_events(group),
    )
    template = merge_template(text, every, [stream for stream in every if stream not in made])
    return _MergeJob(job_id, group, slot, task_queue_id, outputs, compiled(template).fill(fill))


def _known_events(group: MergeGroup, stream: str) -> int | None:
    """Events of what the files of a stream are merged into, where those of all are known."""
    events = [file.n_events for file in group.files if file.stream == stream]
    return sum(events) if events and all(events) else None


def _events(group: MergeGroup) -> int:
    """Events in the files of the stream that has most."""
    events = Counter[str]()
    for file in group.files:
        events[file.stream] += file.n_events
    return max(events.values(), default=0)


_LOCK = "SELECT id FROM brokerage_job WHERE id = ANY(%s) AND status = 'merging' ORDER BY id FOR NO KEY UPDATE"
_TAKE = """
UPDATE workqueues_file f SET status = 'merging', job_id = v.job_id, last_attempt_time = now(), retry_due = NULL
FROM unnest(%s::bigint[], %s::bigint[]) AS v(id, job_id) WHERE f.id = v.id AND f.status = 'prepared'
"""


def _insert(run_id: str, task: Task, jobs: Sequence[_MergeJob], who: str) -> None:
    lock_claimed(task.id, run_id)
    uses = [(file, job) for job in jobs for file in job.group.files]
    merged = sorted({id_ for job in jobs for id_ in job.group.merged_ids})
    written = Counter(file.dataset_id for job in jobs for file in job.outputs)
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [merged])
        if cursor.rowcount != len(merged):
            raise Stale("jobs that were to be merged have ended")
        locked = sorted({*written, *(file.dataset_id for file, _ in uses)})
        datasets = list(Dataset.objects.select_for_update(no_key=True).filter(id__in=locked).order_by("id"))
        cursor.execute(_TAKE, [[file.id for file, _ in uses], [job.id for _, job in uses]])
        if cursor.rowcount != len(uses):
            raise Stale("files that were to be merged are merged by others")
    keep({job.task_queue_id for job in jobs})
    release = " ".join(filter(None, [task.trans_uses, task.trans_home]))
    Job.objects.bulk_create(_row(task, job) for job in jobs)
    origin = origins({job.id: job.group.merged_ids for job in jobs})
    JobSpec.objects.bulk_create(_spec(task, job, release, origin.get(job.id, job.id)) for job in jobs)
    JobInput.objects.bulk_create(
        JobInput(job_id=job.id, file_id=file.id, dataset_id=file.dataset_id, attempt_nr=file.tries) for file, job in uses
    )
    JobChange.objects.bulk_create(
        JobChange(job_id=job.id, old=NEW, new="activated", epoch=0, who=who[:128], why=_why(job)) for job in jobs
    )
    File.objects.bulk_create(file for job in jobs for file in job.outputs)
    record_followers(task.id, [(id_, job.id) for job in jobs for id_ in job.group.merged_ids], MERGE_RELATION)
    count_outputs(datasets, written, who)
    tell_after_commit(Counter(job.group.queue_id for job in jobs))


def _why(job: _MergeJob) -> str:
    n = len(job.group.merged_ids)
    return f"made for {job.group.queue}, to merge what {n} job{'' if n == 1 else 's'} made there"


def _row(task: Task, job: _MergeJob) -> Job:
    return Job(
        id=job.id,
        task_id=task.id,
        kind=JobKind.MERGE,
        status="activated",
        priority=max(PRIORITY, task.current_priority),
        ready_priority=-max(PRIORITY, task.current_priority),
        task_queue_id=job.task_queue_id,
        computing_queue_id=job.group.queue_id,
        storage=job.group.storage,
        work_queue_id=task.work_queue_id,
        resource_type=_resources(task, job.slot),
        core_count=job.slot.core_count,
        attempt_nr=1 + job.tries,
    )


def _spec(task: Task, job: _MergeJob, release: str, origin: int) -> JobSpec:
    return JobSpec(
        job_id=job.id,
        job_name=f"{task.task_name[:LONGEST_NAME]}.{origin}",
        vo=task.vo,
        user_name=task.user_name,
        prod_source_label=task.prod_source_label,
        processing_type=PROCESSING_TYPE,
        working_group=task.working_group,
        transformation=(task.params.task_params.get("mergeSpec") or {}).get("transPath") or TRANSFORMATION,
        software_release=release,
        job_parameters=job.parameters,
        ram_mb=job.slot.ram_mb,
        disk_mb=job.slot.disk_mb,
        walltime_s=job.slot.walltime_s,
        n_input_files=len(job.group.files),
        input_bytes=job.group.size,
        n_events=_events(job.group),
        nucleus=task.nucleus,
    )
