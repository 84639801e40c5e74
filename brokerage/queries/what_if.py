"""What the brokerage would decide about a task now, as it is or with something changed. Nothing is written.

The transaction is read-only and is rolled back, so that not even a bug below could store anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from django.db import connection, transaction

from broker_site.foundation import gdpconfig
from brokerage.queries.dry_run import NothingToAsk, config_for, current_question
from brokerage.rules.decision.policy_choice import Unusable, policy_chosen
from brokerage.rules.explain.edits import Edit
from brokerage.rules.explain.what_if import WhatIf, what_if
from brokerage.rules.facts.ask import Ask
from workqueues.models import Task
from workqueues.splitters.check import BadPlan

LIMITS = "SELECT set_config('transaction_read_only', 'on', true), set_config('statement_timeout', %s, true)"
LONGEST_MS = 10_000
"""A statement of a dry run that takes longer is ended."""


class DryRun(NamedTuple):
    """What was asked, and what would be decided."""

    ask: Ask
    told: WhatIf


def tried_again(task: Task, edits: Sequence[Edit] = ()) -> DryRun:
    """Decide now, and once more with the edits. Raises NothingToAsk, BadEdits."""
    core = gdpconfig.component("core", vo=task.vo)
    try:
        with reading_only():
            policy, ask, world, _ = current_question(task)
        told = what_if(
            policy,
            ask,
            world,
            partial(config_for, task.vo),
            edits,
            f"{task.id}.{task.epoch}",
            lambda vo, activity: policy_chosen(vo, activity, core),
        )
    except (Unusable, BadPlan) as no:
        raise NothingToAsk(str(no)) from no
    return DryRun(ask, told)


@contextmanager
def reading_only() -> Iterator[None]:
    """A transaction that cannot write and leaves nothing."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(LIMITS, [str(LONGEST_MS)])
        yield
        transaction.set_rollback(True)
