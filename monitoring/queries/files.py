"""Files as tasks use and make them, as pages show them: rows of their list, and one with its tries, copies and moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db.models import Q, QuerySet

from broker_site.foundation.access.permissions import VoScope
from brokerage.models import JobInput
from monitoring.queries.copies import Copy, copies_of
from monitoring.queries.database import alias
from workqueues.models import File, FileChange
from workqueues.states import NUMBERED_TYPES

SAME = (
    "id", "lfn", "dataset_id", "task_id", "type", "status", "held", "fsize", "n_events", "attempt_nr", "max_attempt",
    "failed_attempt", "job_id", "out_job_id", "lost_at", "creation_date",
)  # fmt: skip
"""Columns of a file that are shown as they are stored."""
MOST = 100
"""Uses and moves of a file that its page shows: the newest."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """One file of one task. `held`: why a ready file is not given to jobs; `job_id`: the last job that used it, `out_job_id` the
    one that makes or made it; `storages`: where copies are.
    """

    id: int
    lfn: str
    dataset_id: int
    dataset_name: str
    task_id: int
    type: str
    status: str
    held: str
    fsize: int | None
    n_events: int | None
    attempt_nr: int
    max_attempt: int | None
    failed_attempt: int
    job_id: int | None
    out_job_id: int | None
    storages: tuple[str, ...]
    lost_at: datetime | None
    creation_date: datetime


class FileUse(NamedTuple):
    """One use of the file by a job, with how that stands."""

    job_id: int
    attempt_nr: int
    use: str
    job_status: str
    queue: str
    since: datetime


@dataclass(frozen=True, slots=True)
class FileDetails:
    """A file with its copies, the jobs that used it, newest first, and the moves that no job caused."""

    row: FileRow
    copies: Sequence[Copy]
    uses: Sequence[FileUse]
    changes: Sequence[FileChange]

    @property
    def in_catalogue(self) -> bool:
        """Whether it is a file that a catalogue may have."""
        return self.row.type not in NUMBERED_TYPES


def visible_files(scope: VoScope) -> QuerySet[File]:
    """All files of tasks of these VOs, to filter further."""
    return File.objects.using(alias()).filter(scope.q("task__vo"))


def file_rows(files: QuerySet[File]) -> list[FileRow]:
    """The rows of a bounded query, in its order; two statements."""
    read = list(files.select_related("dataset"))
    copies = copies_of(read)
    return [_row(file, copies.get((file.dataset.dataset_name, file.lfn), ())) for file in read]


def _row(file: File, copies: Sequence[Copy]) -> FileRow:
    stored = {name: getattr(file, name) for name in SAME}
    storages = tuple(dict.fromkeys(copy.storage for copy in copies))
    return FileRow(**stored, dataset_name=file.dataset.dataset_name, storages=storages)


def find_file(file_id: int, scope: VoScope) -> File | None:
    """The file with its dataset, if it is in the scope."""
    return visible_files(scope).select_related("dataset").filter(id=file_id).first()


_SHARED = Q(tracked=False) | Q(event_range_id__isnull=False)
_ALONE = Q(tracked=True, event_range_id__isnull=True)
_USES = (
    Q(status="returned")
    | (Q(status="live") & _ALONE)
    | (Q(status="live") & _SHARED)
    | (Q(status="used") & _ALONE)
    | (Q(status="used") & _SHARED)
)
"""All that there is, in the words of the indexes by file: each of them has some."""


def file_details(file: File) -> FileDetails:
    """All that its page shows; three statements."""
    using = alias()
    copies = copies_of([file]).get((file.dataset.dataset_name, file.lfn), ())
    inputs = JobInput.objects.using(using).filter(_USES, file_id=file.id).select_related("job__computing_queue")
    uses = [
        FileUse(
            use.job_id, use.attempt_nr, use.status, use.job.status,
            use.job.computing_queue.name if use.job.computing_queue else "", use.job.status_since,
        )
        for use in inputs.order_by("-id")[:MOST]
    ]  # fmt: skip
    changes = FileChange.objects.using(using).filter(file_id=file.id).order_by("-id")[:MOST]
    return FileDetails(_row(file, copies), copies, uses, list(changes))
