"""A child that vanishes again and again costs the files of a task no try."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models import F

from brokerage.queries.invariants import check
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.child_broker import Child, ended
from tests.flow.steps import LIFE, run_agents
from workqueues.models import Element, File

pytestmark = pytest.mark.django_db(transaction=True)


def test_files_outlive_many_children() -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 2)
    task = submitted(reading("t", "in.data", workTo="children", maxAttempt=3))
    run_agents(2, (*LIFE, "offer"))
    child = Child()
    for _ in range(5):
        assert len(child.pulled()) == 1
        Element.objects.update(lease_until=F("lease_until") - timedelta(days=1))
        run_agents(1, ("offer",))
    assert set(File.objects.filter(type="input").values_list("status", "attempt_nr")) == {("picked", 0)}
    (head,) = child.pulled()
    (work,) = child.work(head)
    child.report(child.of(head, "Done", ended(work, 1, *(file["lfn"] for file in work["inputs"][0]["files"]))))
    run_agents(2, (*LIFE, "offer"))
    task.refresh_from_db()
    assert task.status == "done"
    assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []
