"""Wishes of jobs that are about to be made, for input that is not at their queue."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from brokerage.ledger.transfers.asking import ask
from brokerage.queries.missing_input import MissingFile, missing_files
from brokerage.rules.placement.input_ways import InputWay
from brokerage.rules.placement.new_job import NewJob
from brokerage.rules.transfers.job_wishes import Wisher
from brokerage.rules.transfers.wishes import FileWish
from workqueues.models import Task
from workqueues.rules.jobs.dataset_attributes import read_attributes


class AwaitedInput(NamedTuple):
    """Jobs whose input must come, with how many files of each; and those that read some over the network."""

    awaited: Mapping[int, int] = {}
    afar: Collection[int] = frozenset()


def ask_for_input(task: Task, jobs: Sequence[NewJob], ways: Mapping[str, InputWay], who: str) -> AwaitedInput:
    """Ask for what jobs at these queues lack, in the caller's transaction, which holds no lock yet: transfers come first.

    Files of datasets that every queue has are not asked for.
    """
    jobs_of = _users(jobs, ways)
    missing = [m for m in missing_files(list(jobs_of), ways) if not read_attributes(m.attributes).everywhere]
    afar = {job for m in missing if m.direct for job in jobs_of[m.queue, m.file_id]}
    brought = [m for m in missing if not m.direct and ways[m.queue].destination]
    wishes = [wish for m in brought for wish in _wishes(task, m, jobs_of[m.queue, m.file_id], ways)]
    if not wishes:
        return AwaitedInput(afar=afar)
    transfers = ask(wishes, who, f"input of jobs of task {task.id}")
    awaited = Counter(w.job_id for w, transfer in zip(wishes, transfers, strict=True) if transfer is not None and w.job_id)
    return AwaitedInput(awaited, afar)


def wisher_of(task: Task) -> Wisher:
    """The task as who wishes."""
    return Wisher(
        task.id,
        task.vo,
        task.prod_source_label,
        task.processing_type,
        task.current_priority,
        task.gshare,
        task.user_name,
        task.working_group,
    )


def _users(jobs: Sequence[NewJob], ways: Mapping[str, InputWay]) -> Mapping[tuple[str, int], list[int]]:
    """(queue, input file) -> the jobs there that read it."""
    jobs_of: dict[tuple[str, int], list[int]] = defaultdict(list)
    for job in jobs:
        if job.queue in ways:
            for file_id in {*(use.file_id for use in job.inputs), *(piece.file_id for piece in job.ranges)}:
                jobs_of[job.queue, file_id].append(job.id)
    return jobs_of


def _wishes(task: Task, missing: MissingFile, jobs: Sequence[int], ways: Mapping[str, InputWay]) -> list[FileWish]:
    wisher, destination = wisher_of(task), ways[missing.queue].destination
    return [
        wisher.wish(missing.catalogue_id, destination, missing.dataset_id, job_id, on_tape=missing.on_tape) for job_id in jobs
    ]
