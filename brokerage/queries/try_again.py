"""What the brokerage would decide about a task now, as it is or with something changed. Nothing is written.

The transaction is read-only and is rolled back, so that not even a bug below could store anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from django.db import connection, transaction

from brokerage.queries.dry_run import Question, config_for, current_question
from brokerage.rules.edits import Edit
from brokerage.rules.what_if import WhatIf, what_if
from workqueues.models import Task

LONGEST_MS = 10_000
"""A statement of a dry run that takes longer is ended."""


def tried_again(task: Task, edits: Sequence[Edit] = ()) -> WhatIf:
    """Decide now, and once more with the edits. Raises NothingToAsk, BadEdits."""
    with reading_only():
        asked = question(task)
    return what_if(asked.policy, asked.ask, asked.world, partial(config_for, task.vo), edits, f"{task.id}.{task.epoch}")


def question(task: Task) -> Question:
    """What would be asked now, the ask completed with what only the grid knows. Raises NothingToAsk."""
    asked = current_question(task)
    return asked._replace(ask=asked.world.completed(asked.ask))


@contextmanager
def reading_only() -> Iterator[None]:
    """A transaction that cannot write and leaves nothing."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(LONGEST_MS)])
        yield
        transaction.set_rollback(True)
