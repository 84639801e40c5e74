"""Work queues in the admin: edited with their faults beside the field, warned about together, tried with a task; tasks follow."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.test import Client

from broker_site.foundation.access.models import Audit
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from workqueues.models import Task, WorkQueue
from workqueues.queries.place_faults import check_places

LIST = "/admin/workqueues/workqueue/"

pytestmark = pytest.mark.django_db


def made(name: str, order: int, **more: Any) -> WorkQueue:
    """A work queue for every VO and label."""
    return WorkQueue.objects.create(**{"queue_name": name, "queue_order": order, "queue_type": "*", "vo": "*"} | more)


def posted(root: Client, **changes: Any) -> Any:
    """The answer to a new work queue."""
    form = {
        "queue_name": "evgensimul",
        "queue_order": 5,
        "status": "active",
        "vo": "*",
        "queue_type": "*",
        "queue_share": 40,
        "why": "x",
    }
    form |= {"criteria": "processingType IN (:p1,:p2)", "variables": "p1:evgen,p2:simul"}
    return root.post(f"{LIST}add/", {name: value for name, value in (form | changes).items() if value is not None})


def test_a_work_queue_is_added_and_tasks_that_meet_its_criteria_belong_to_it(root: Client) -> None:
    grid("ALPHA")
    assert posted(root).status_code == 302
    assert Audit.objects.filter(act="workqueue.add", after__queue_name="evgensimul").count() == 1
    simul, reco = submitted(parameters("t1")), submitted(parameters("t2", processingType="reco"))
    run_agents()
    names = dict(Task.objects.values_list("id", "work_queue__queue_name"))
    assert names == {simul.id: "evgensimul", reco.id: "default"}


def test_a_task_that_no_queue_takes_waits_with_that_reason_and_goes_on_when_one_does(root: Client) -> None:
    grid("ALPHA")
    WorkQueue.objects.update(status="inactive")
    task = submitted(parameters("t1"))
    run_agents()
    task.refresh_from_db()
    assert (task.status, task.error_dialog) == ("pending", "no work queue takes the task")


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"criteria": "processingType IN :p1", "variables": "p1:a"}, "criteria", "at character 19: expected '(', found ':p1'"),
        ({"variables": "p1:evgen"}, "criteria", "expected a variable with a value (there are: p1), found :p2"),
        ({"variables": "p1:evgen,p2:a,p3:b"}, "variables", "the criteria do not use :p3"),
        ({"variables": "p1"}, "variables", "expected name:value, found 'p1'"),
        ({"criteria": "procesingType = 1", "variables": ""}, "criteria", "the nearest known one is processingType"),
        ({"queue_order": 1}, "queue_order", "part has the order 1 already"),
        ({"queue_share": -1}, "queue_share", "expected 0 or more, found -1"),
        ({"is_partition": "on"}, "criteria", "a partition has no criteria"),
        ({"is_partition": "on", "criteria": "", "variables": "", "partition": "P"}, "partition", "cannot be in a partition"),
        ({"partition": "N"}, "partition", "normal is no partition"),
        ({"criteria": "(" * 60}, "criteria", "at most 50 brackets"),
    ],
)  # fmt: skip
def test_faults_stand_beside_their_field_and_nothing_is_stored(
    root: Client, changes: dict[str, Any], field: str, told: str
) -> None:
    ids = {"P": made("part", 1, is_partition=True).id, "N": made("normal", 2).id}
    answer = posted(root, **{name: ids.get(value, value) for name, value in changes.items()})
    assert answer.status_code == 200
    assert told in " ".join(answer.context["adminform"].form.errors[field])
    assert not WorkQueue.objects.filter(queue_name="evgensimul").exists()


def test_what_queues_do_together_is_told_on_the_list_and_after_saving(root: Client) -> None:
    made("group", 1, criteria="workingGroup LIKE :p1", variables="p1:GP_%")
    made("all", 3)
    made("late", 4, criteria="coreCount > 1")
    answer = posted(root, queue_order=2)
    page = root.get(answer.url).content.decode()
    overlap = "group comes first for tasks like workingGroup=GPxx, processingType=evgen"
    assert f"evgensimul: {overlap}" in page
    assert "late: no task reaches it: all takes all that it would" in page


def test_the_list_tells_which_queue_would_take_a_task_and_what_the_others_said(root: Client) -> None:
    made("group", 1, criteria="workingGroup LIKE 'GP%'")
    made("cms", 2, vo="cms")
    made("many", 3, criteria="coreCount > 1")
    made("rest", 4)
    task = submitted(parameters("t1"))
    page = root.get(LIST, {"task": task.id}).content.decode()
    for line in (
        f"Task {task.id}: work queue rest.",
        "group: its criteria compare something that is not set",
        "cms (cms): is for the VO cms",
        "many: its criteria do not hold",
        "rest: takes it",
    ):
        assert line in page
    assert "There is no task 999." in root.get(LIST, {"task": 999}).content.decode()
    assert "Enter a whole number." in root.get(LIST, {"task": "x"}).content.decode()


def test_the_list_of_many_work_queues_is_there_at_once(root: Client) -> None:
    WorkQueue.objects.bulk_create(
        WorkQueue(
            queue_name=f"q{n}",
            vo="*",
            queue_order=n,
            criteria=f"processingType IN ('a{n}','b{n}') AND workingGroup LIKE 'G{n}%' AND coreCount > {n} AND campaign <> 'c'",
        )
        for n in range(40)
    )
    began = time.process_time()
    assert root.get(LIST).status_code == 200
    assert time.process_time() - began < 5


def test_a_queue_written_past_the_admin_keeps_no_other_from_taking_tasks_and_its_fault_is_shown(
    root: Client, caplog: pytest.LogCaptureFixture
) -> None:
    grid("ALPHA")
    made("broken", 1, criteria="processingType IN")
    made("evgen", 2, criteria="processingType = 'evgen'")
    task = submitted(parameters("t1"))
    run_agents()
    task.refresh_from_db()
    assert task.work_queue is not None
    assert task.work_queue.queue_name == "evgen"
    assert [record.getMessage() for record in caplog.records if "broken" in record.getMessage()] == [
        "work queue broken takes no tasks, it cannot be read: at character 18: expected '(', found the end"
    ]
    page = root.get(LIST, {"task": task.id})
    assert page.status_code == 200
    assert "broken: it takes no tasks: at character 18" in page.content.decode()
    (warning,) = check_places(databases=["default"])
    assert warning.msg.startswith("work queue broken: at character 18")


def test_each_refusal_names_its_rule(root: Client) -> None:
    made("part", 1, is_partition=True)
    parent = WorkQueue.objects.get(queue_name="part").id
    for changes, field, rule in (
        ({"queue_order": 1}, "queue_order", "unique"),
        ({"is_partition": "on", "criteria": "", "variables": "", "partition": parent}, "partition", "partition"),
        ({"criteria": "processingType IN", "variables": ""}, "criteria", "format"),
        ({"queue_share": -5}, "queue_share", "range"),
    ):
        form = posted(root, **changes).context["adminform"].form
        assert rule in {error.code for error in form.errors.as_data()[field]}, (changes, form.errors)
