"""Agent merge. Takes tasks with jobs that wait to be merged and for no other job at their site. Leaves merge jobs activated, or,
where nothing has run for long, the waiting jobs cancelled and their inputs ready. Next: pilots, or generate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from brokerage.ledger.expiry import SUB_STATUS, end_seen
from brokerage.ledger.merge_jobs import MergeGroup, make_merge_jobs
from brokerage.queries.premerged import (
    WaitingJob,
    premerged_files,
    ready_to_merge,
    stranded_merges,
    tasks_to_merge,
    waiting_to_merge,
)
from brokerage.rules.dispatch.settlement import JobVersion
from brokerage.rules.placement.merge_groups import MergeLimits, PremergedJob, merge_groups
from brokerage.states import MERGE_FAILED
from workqueues.agents.each import each
from workqueues.ledger.claims import claim_tasks, release
from workqueues.models import Task
from workqueues.rules.jobs.split_rule import parse
from workqueues.states import TASK

BATCH = 20
STRANDED = "for long no job could run where they are"


@agent("merge")
def merge(run: Run) -> int:
    """Make merge jobs wherever nothing is to be waited for: how many."""
    if stranded := stranded_merges(gdpconfig.value("jobbroker", "MERGE_PREASSIGNMENT")):
        end_seen(stranded, "closed", run.who, STRANDED, sub_status=SUB_STATUS["closed"])
    candidates = Task.objects.filter(id__in=tasks_to_merge(), status__in=TASK.merging)
    ready = ready_jobs(list(candidates))
    tasks = claim_tasks(run.id, run.claim_s, TASK.merging, BATCH, work="outputs to merge", among=sorted(ready)) if ready else []
    return each(run, tasks, merge_outputs)


def ready_jobs(tasks: Sequence[Task]) -> dict[int, list[WaitingJob]]:
    """Jobs of these tasks whose outputs are to be merged now, by task."""
    scopes = {task.id: gdpconfig.value("jobbroker", "MERGE_SCOPE", vo=task.vo) for task in tasks}
    ready: dict[int, list[WaitingJob]] = defaultdict(list)
    for job in ready_to_merge(*waiting_to_merge(sorted(scopes)), scopes):
        ready[job.task_id].append(job)
    return ready


def merge_outputs(run: Run, task: Task) -> int:
    """Make merge jobs for one claimed task, and give it back: how many. What waits where no job can run for long is given up."""
    ready = ready_jobs([task]).get(task.id, [])
    longest = timedelta(seconds=gdpconfig.value("jobbroker", "MERGE_PREASSIGNMENT", vo=task.vo))
    stranded = [job for job in ready if job.unserved_since and job.unserved_since < run.now - longest]
    if stranded:
        seen = [JobVersion(job.id, job.epoch, "merging", task.id) for job in stranded]
        end_seen(seen, "cancelled", run.who, f"its outputs could not be merged: {STRANDED}", sub_status=MERGE_FAILED)
    groups = grouped(task, [job for job in ready if job.unserved_since is None])
    made = make_merge_jobs(run.id, task, groups, run.who) if groups else 0
    release(task.id, run.id)
    return made


def grouped(task: Task, ready: Sequence[WaitingJob]) -> list[MergeGroup]:
    """What each merge job gets: outputs that lie together, as many as its limits allow."""
    files = premerged_files(task.id, [job.id for job in ready])
    places: dict[tuple[int, str], list[WaitingJob]] = defaultdict(list)
    for job in ready:
        places[job.queue_id, job.storage].append(job)
    groups = []
    for here in places.values():
        first, premerged = here[0], [PremergedJob(job.id, files[job.id]) for job in here if files[job.id]]
        for group in merge_groups(premerged, MergeLimits.of(parse(task.split_rule), first.maxwdir)):
            ids, together = [job.id for job in group], [file for job in group for file in job.files]
            groups.append(MergeGroup(first.queue_id, first.queue, first.storage, ids, together, first.maxrss, first.maxwdir))
    return groups
