"""The example over the invented grid: 200 valid tasks of all kinds, and what becomes of one of each."""

from __future__ import annotations

import pytest
from django.core.management import call_command

from brokerage.models import Decision, Job
from examples.world import broker, tasks
from examples.world.broker import GRID
from workqueues.models import Task
from workqueues.rules.refine import validate


def test_there_are_200_valid_tasks_each_with_a_name_of_its_own() -> None:
    made = list(tasks.tasks())
    assert len(made) == 200
    assert len({params["taskName"] for _, params in made}) == 200
    assert {params["taskName"]: validate(params) for _, params in made if validate(params)} == {}


@pytest.mark.django_db
def test_one_of_each_kind_is_brokered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "KINDS", [kind._replace(tasks=1) for kind in tasks.KINDS])
    call_command("import_grid", str(GRID), verbosity=0)
    broker.prepare()
    kinds = broker.submit_all()
    broker.run_agents()
    status = {kinds[id_]: state for id_, state in Task.objects.values_list("id", "status")}
    jobs = {kinds[id_] for id_ in Job.objects.values_list("task_id", flat=True)}
    assert {"evgen", "analysis", "group", "container"} <= jobs
    assert {kind for kind, state in status.items() if state in ("running", "scouting")} == jobs
    assert status["impossible"] == "assigning"
    impossible = Task.objects.get(id=next(id_ for id_, kind in kinds.items() if kind == "impossible"))
    assert "its jobs can run nowhere: the closest queue is" in impossible.error_dialog
    assert "a job needs 899100 MB, a slot gives" in impossible.error_dialog
    assert set(Decision.objects.values_list("policy", flat=True)) == {"nucleus", "production", "analysis"}
    criteria = broker.first_criteria()
    assert criteria["production"][1]["-cpucore"] > 0
    assert criteria["analysis"][1]["-locality"] > 0
