"""Datasets of tasks as pages show them: rows of their list, and one with its files by state and where they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db import connections
from django.db.models import QuerySet

from broker_site.foundation.access.permissions import VoScope
from brokerage.queries.dataset_places import PlaceOfDataset, dataset_places
from monitoring.queries.database import alias
from workqueues.models import Dataset
from workqueues.states import INPUT_TYPES, NUMBERED_TYPES

MOST_FILES = 100_000
"""Files of one dataset that are counted by state and by storage."""

SAME = (
    "id", "dataset_name", "container_name", "task_id", "vo", "type", "status", "site", "destination", "n_files", "n_files_used",
    "n_files_finished", "n_files_failed", "n_files_missing", "n_events", "creation_time",
)  # fmt: skip
"""Columns of a dataset that are shown as they are stored."""

_STATES = """
SELECT status, count(*) FROM (SELECT status FROM workqueues_file WHERE dataset_id = %s LIMIT %s) AS bounded
GROUP BY status ORDER BY status
"""
_COPIES = """
WITH files AS MATERIALIZED (
    SELECT c.id, c.fsize FROM workqueues_cataloguefile c JOIN workqueues_cataloguedataset d ON d.id = c.dataset_id
    WHERE d.name = %s AND d.vo = %s LIMIT %s
)
SELECT r.storage, r.state, count(*), coalesce(sum(f.fsize), 0)::bigint
FROM files f JOIN workqueues_replica r ON r.file_id = f.id GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2
"""


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """One dataset in the list, as one task uses or makes it."""

    id: int
    dataset_name: str
    container_name: str
    task_id: int
    task_name: str
    vo: str
    type: str
    status: str
    site: str
    destination: str
    n_files: int
    n_files_used: int
    n_files_finished: int
    n_files_failed: int
    n_files_missing: int
    n_events: int | None
    creation_time: datetime

    @property
    def is_input(self) -> bool:
        return self.type in INPUT_TYPES


class CopiesAt(NamedTuple):
    """Copies of files of a dataset on one storage endpoint, in one state."""

    storage: str
    state: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class DatasetDetails:
    """A dataset, its files by state, where their copies are and where they are wanted. `capped`: there are more files than these
    numbers count. `others`: other tasks that use a dataset of this name.
    """

    row: DatasetRow
    dataset: Dataset
    by_state: Mapping[str, int]
    copies: Sequence[CopiesAt]
    places: Sequence[PlaceOfDataset]
    others: Sequence[DatasetRow]
    capped: bool

    @property
    def in_catalogue(self) -> bool:
        """Whether it is data that a catalogue may have."""
        return self.row.type not in NUMBERED_TYPES


def visible_datasets(scope: VoScope) -> QuerySet[Dataset]:
    """All datasets of tasks of these VOs, to filter further: a list of them has an index."""
    return Dataset.objects.using(alias()).filter(scope.q("vo"))


def dataset_rows(datasets: QuerySet[Dataset]) -> list[DatasetRow]:
    """The rows of a bounded query, in its order; one statement."""
    return [dataset_row(dataset) for dataset in datasets.select_related("task")]


def dataset_row(dataset: Dataset) -> DatasetRow:
    """A dataset that was read with its task."""
    return DatasetRow(**{name: getattr(dataset, name) for name in SAME}, task_name=dataset.task.task_name)


def find_dataset(dataset_id: int, scope: VoScope) -> Dataset | None:
    """The dataset with its task, if it is in the scope."""
    return visible_datasets(scope).select_related("task").filter(id=dataset_id).first()


MOST_OTHERS = 20
"""Other tasks with the dataset that its page lists: the newest."""


def dataset_details(dataset: Dataset, scope: VoScope) -> DatasetDetails:
    """All that its page shows; four statements."""
    using = alias()
    with connections[using].cursor() as cursor:
        cursor.execute(_COPIES, [dataset.dataset_name, dataset.data_vo or dataset.vo, MOST_FILES])
        copies = [CopiesAt(*row) for row in cursor.fetchall()]
        cursor.execute(_STATES, [dataset.id, MOST_FILES])
        by_state = dict(cursor.fetchall())
    others = visible_datasets(scope).filter(dataset_name=dataset.dataset_name).exclude(id=dataset.id)
    return DatasetDetails(
        row=dataset_row(dataset),
        dataset=dataset,
        by_state=by_state,
        copies=copies,
        places=dataset_places([dataset.id], using).get(dataset.id, ()),
        others=dataset_rows(others.order_by("-id")[:MOST_OTHERS]) if dataset.type not in NUMBERED_TYPES else [],
        capped=sum(by_state.values()) >= MOST_FILES,
    )
