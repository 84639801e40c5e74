"""What becomes of the datasets that a task wrote when it ends, in the catalogue."""

from __future__ import annotations

from workqueues.catalogue import catalogue
from workqueues.models import Task
from workqueues.queries.datasets import written_names
from workqueues.queries.tasks import written_by_others
from workqueues.queries.writers import writer_of


def close_outputs(task: Task) -> None:
    """No more files come to them, but for those to which other tasks write too. Raises CatalogueUnavailable."""
    written = written_names(task.id)
    shared = written_by_others(task, written)
    catalogue().close([name for name in written if name not in shared], writer_of(task))
