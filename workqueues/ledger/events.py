"""Event ranges: given to jobs, ended with them; and what that makes of their files (decision F2).

The rules are `workqueues.rules.event_ranges`. Every verb works in the caller's transaction; files are locked after their
datasets, ranges only by those who hold the lock of their file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from workqueues.ledger.copying import copy_rows, take_ids


class NewRange(NamedTuple):
    """Events of a file for one job: a free piece or a part of it. `attempt_nr`, `failed_attempt`: those of the piece."""

    dataset_id: int
    file_id: int
    job_id: int
    first: int
    n_events: int
    attempt_nr: int = 0
    failed_attempt: int = 0


def insert_ranges(task_id: int, rows: Sequence[NewRange]) -> list[int]:
    """Insert one range a row by COPY, in the caller's transaction: their ids, in the same order.

    The database refuses events that another job has or had with success (IntegrityError).
    """
    ids = take_ids("workqueues_eventrange", len(rows))
    copy_rows(
        "workqueues_eventrange",
        ["id", "task_id", "dataset_id", "file_id", "status", "job_id", "job_process_id", "def_min_event_id", "def_max_event_id",
         "attempt_nr", "failed_attempt"],
        (
            (i, task_id, r.dataset_id, r.file_id, "ready", r.job_id, r.first, r.first, r.first + r.n_events - 1,
             r.attempt_nr + 1, r.failed_attempt)
            for i, r in zip(ids, rows, strict=True)
        ),
    )  # fmt: skip
    return ids


def settle_file_states(file_ids: Sequence[int]) -> None:
    """After `insert_ranges`: picked files that gave events to jobs are running, or ready where events are left; counters too.

    Call it once in the transaction of the jobs, with every file that got a range there. The caller has locked the datasets of
    the files, together with its other datasets in order of id. The job of a file is that of its newest range. Raises Stale when
    one of the files is not picked.
    """
    raise NotImplementedError
