"""Input of a claimed task for its next jobs: picked, or given up where no job will ever take it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from brokerage.queries.usable_input import max_files_of, usable_input
from brokerage.rules.placement.usable_input import UsableInput, files_wanted
from workqueues.ledger.events import drop
from workqueues.ledger.picking import take_files
from workqueues.ledger.secondaries import load_secondaries
from workqueues.models import Dataset, Task
from workqueues.rules.jobs.split_rule import parse
from workqueues.splitters.protocol import Dropped

MOST_FILES = 50_000


def take_input(run_id: str, task: Task, dataset: Dataset, jobs: int) -> UsableInput:
    """Pick files of a master dataset, and of its secondary ones, for at most so many jobs. Raises NoGenerator, Stale."""
    dataset.refresh_from_db(fields=["n_files_used", "n_files_to_be_used"])  # a dead run's files, and those of jobs, came back
    wanted = files_wanted(parse(task.split_rule), dataset, max_files_of(task), jobs)
    files = take_files(run_id, task.id, dataset.id, min(wanted, MOST_FILES))
    usable = usable_input(task, dataset, files)
    others = load_secondaries(run_id, task, dataset, max(len(usable.columns), jobs)) if files else []
    return replace(usable, others=others)


def give_up(run_id: str, task_id: int, usable: UsableInput, dropped: Sequence[Dropped], who: str) -> None:
    """Record what no job will ever take, by the task's own rules, with the reason."""
    for reason, rows in usable.dropped_events(dropped).items():
        drop(run_id, task_id, rows, reason, who)
