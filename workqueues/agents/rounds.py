"""The rounds of a periodic task (row J16, decision D11): each gives so many new records, and each record a job."""

from __future__ import annotations

from typing import NamedTuple

from broker_site.foundation.agency.run import Run
from workqueues.ledger.feed import CatalogueLook
from workqueues.models import Dataset, Task
from workqueues.rules.jobs.feeding import NewFile
from workqueues.rules.jobs.open_inputs import round_due
from workqueues.rules.jobs.pseudo_files import pseudo_files
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.rules.refine import DatasetPlan, read_task
from workqueues.rules.refine.contradictions import rounds_end
from workqueues.states import MUTABLE


class NewRound(NamedTuple):
    """The records of a round, none where it is not due, and what is kept of this look."""

    files: list[NewFile]
    look: CatalogueLook


def new_round(run: Run, task: Task, dataset: Dataset, p: DatasetPlan, rules: SplitRules) -> NewRound:
    """What is due now of the numbered records of a claimed periodic task; numbers and events go on behind those of before."""
    until = rounds_end(read_task(task.params.task_params).parameters)
    due, first = dataset.state_check_expiration, dataset.state_check_time is None
    found = round_due(due, rules.period_s or 0, until, run.now, first=first)
    look = CatalogueLook(MUTABLE if found.next_at else "closed", found.next_at)
    if not found.now:
        return NewRound([], look)
    before, each = dataset.n_files, p.events_per_file or 0
    records = pseudo_files(rules.jobs_per_period or 1, offset=p.offset + before, events_per_file=p.events_per_file)
    shift = before * each
    return NewRound([r._replace(first_event=r.first_event + shift) if r.first_event else r for r in records], look)
