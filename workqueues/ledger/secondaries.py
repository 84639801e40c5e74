"""Files of secondary datasets for jobs: tracked ones are picked as those of the master are, the others only read."""

from __future__ import annotations

from math import ceil

from django.db.models import F

from workqueues.ledger.picking import take_files
from workqueues.models import Dataset, Task
from workqueues.queries.datasets import all_files, secondaries_of
from workqueues.rules.jobs.dataset_attributes import Attributes, read_attributes
from workqueues.splitters.protocol import Files, Secondary, SecondaryFiles, SecondaryRow

MOST_FILES = 20_000
"""Files of one tracked dataset that are picked at once."""


def load_secondaries(run_id: str, task: Task, master: Dataset, n_master_files: int) -> list[SecondaryFiles]:
    """The secondary datasets of `master` for jobs on so many of its files (jobs, where events are cut), in order of id.

    Of a tracked dataset so many ready files are picked for the holder of the claim as these can need; what no job takes goes
    back with `give_back_picked`. Of the others all files are read, and `at` is where the last round stopped. Held files are left
    out. Raises Stale when the claim is gone.
    """
    secondaries = []
    for dataset in secondaries_of(master):
        rule = read_attributes(dataset.attributes)
        if rule.tracked:
            rows = [
                SecondaryRow(
                    f.id, f.dataset_id, f.lfn, f.fsize or 0, f.n_events or 0, f.attempt_nr, f.job_id, f.boundary_id, True
                )
                for f in take_files(run_id, task.id, dataset.id, _wanted(rule, n_master_files))
            ]
        else:
            rows = all_files(dataset.id)
        secondaries.append(SecondaryFiles(dataset.id, dataset.stream_name, _secondary(dataset, rule, rows), rows))
    return secondaries


def _wanted(rule: Attributes, n_master_files: int) -> int:
    """Files that jobs on so many files of the master can need: each job takes one at least, and rounds up."""
    if rule.event_ratio is not None:
        return MOST_FILES
    return min(n_master_files * (rule.files_per_job or max(1, ceil(rule.ratio))), MOST_FILES)


def _secondary(dataset: Dataset, rule: Attributes, rows: list[SecondaryRow]) -> Secondary:
    boundaries = [r.boundary_id for r in rows] if any(r.boundary_id is not None for r in rows) else ()
    complete = not rule.tracked or dataset.n_files_to_be_used <= dataset.n_files_used + len(rows)
    files = Files(
        [r.id for r in rows], [r.size for r in rows], [r.n_events for r in rows], boundaries=boundaries, complete=complete
    )
    at = dataset.next_use % len(rows) if rows and not rule.tracked else 0
    return Secondary(rule, files, at, dataset.dataset_name)


def advance(dataset_id: int, n: int) -> None:
    """`n` files of an untracked secondary dataset were dealt out to jobs: the next round goes on behind them."""
    Dataset.objects.filter(id=dataset_id).update(next_use=F("next_use") + n)
