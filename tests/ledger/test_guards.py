"""The database refuses exactly the moves and insertions that the tables of the machines refuse."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import CheckConstraint, Model

from broker_site.foundation.kernel.machine import Machine
from brokerage.models import ComputingQueue, Job, Site, TaskQueue
from brokerage.states import JOB
from workqueues.models import Dataset, EventRange, File, Task
from workqueues.states import EVENT, INPUT_DATASET, INPUT_FILE, OUTPUT_DATASET, OUTPUT_FILE, TASK

pytestmark = pytest.mark.django_db


def task(status: str) -> Task:
    return Task(task_name="t", status=status, ended_at="2026-01-01T00:00Z" if status in TASK.final else None)


def dataset(status: str, type_: str = "input") -> Dataset:
    parent = Task.objects.create(task_name="t", status="registered")
    return Dataset(task=parent, dataset_name="d", type=type_, status=status)


def file(status: str, type_: str = "input") -> File:
    parent = dataset("defined", type_)
    parent.save()
    return File(dataset=parent, task=parent.task, lfn="f", type=type_, status=status)


def event(status: str) -> EventRange:
    parent = file("ready")
    parent.save()
    return EventRange(task=parent.task, dataset=parent.dataset, file=parent, status=status, job_id=1)


def job(status: str) -> Job:
    site, _ = Site.objects.get_or_create(name="S")
    queue, _ = ComputingQueue.objects.get_or_create(name="Q", defaults={"site": site})
    group, _ = TaskQueue.objects.get_or_create(computing_queue=queue)
    held = status in JOB.leased
    return Job(
        task_id=1,
        status=status,
        task_queue=group,
        computing_queue=queue,
        ended_at="2026-01-01T00:00Z" if status in JOB.final else None,
        lease_holder=uuid4() if held else None,
        lease_until="2026-01-01T00:00Z" if held else None,
        ready_priority=0 if status == "activated" else None,
    )


Maker = Callable[[str], Model]

MAKERS: list[tuple[Machine, Maker, str]] = [
    (TASK, task, "workqueues_task"),
    (INPUT_DATASET, dataset, "workqueues_dataset"),
    (OUTPUT_DATASET, lambda s: dataset(s, "output"), "workqueues_dataset"),
    (INPUT_FILE, file, "workqueues_file"),
    (OUTPUT_FILE, lambda s: file(s, "log"), "workqueues_file"),
    (EVENT, event, "workqueues_eventrange"),
    (JOB, job, "brokerage_job"),
]


def put(row: Model, machine: Machine, table: str) -> None:
    """Insert a row in any state, past the guards."""
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {machine.name}_birth")
        row.save()
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER {machine.name}_birth")


def accepted(change: Callable[[], object]) -> bool:
    try:
        with transaction.atomic():
            change()
    except IntegrityError as refused:
        assert "no move from" in str(refused)
        return False
    return True


@pytest.mark.parametrize(("machine", "make", "table"), MAKERS, ids=[m.name for m, _, _ in MAKERS])
def test_database_and_table_agree_on_every_ordered_pair_of_states(machine: Machine, make: Maker, table: str) -> None:
    checks = [c for c in type(make(machine.states[0]))._meta.constraints if isinstance(c, CheckConstraint)]
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for check in checks:  # they tie other columns to the state; here only the arrows are judged
            cursor.execute(f"ALTER TABLE {table} DROP CONSTRAINT {check.name}")
    for old in machine.states:
        row = make(old)
        put(row, machine, table)
        for new in machine.states:
            moved = accepted(partial(type(row)._default_manager.filter(pk=row.pk).update, status=new))
            assert moved == (new == old or machine.allows(old, new)), f"{machine.name}: {old} -> {new}"
            if moved and new != old:
                with connection.cursor() as cursor:
                    cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {machine.name}_guard")
                    type(row)._default_manager.filter(pk=row.pk).update(status=old)
                    cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER {machine.name}_guard")


@pytest.mark.parametrize(("machine", "make", "table"), MAKERS, ids=[m.name for m, _, _ in MAKERS])
def test_a_row_can_only_be_born_in_an_initial_state(machine: Machine, make: Maker, table: str) -> None:
    for state in machine.states:
        assert accepted(make(state).save) == (state in machine.initial), f"{machine.name}: born {state}"


def test_a_lease_and_an_end_are_tied_to_the_state_whatever_the_code_does() -> None:
    row = job("activated")
    row.save()
    jobs = Job.objects.filter(pk=row.pk)
    for broken in ({"lease_until": "2026-01-01T00:00Z"}, {"ended_at": "2026-01-01T00:00Z"}, {"ready_priority": None}):
        with pytest.raises(IntegrityError), transaction.atomic():
            jobs.update(**broken)
