"""Commands on tasks from the list of the admin: through the ledger, with the rights of whoever clicks, told in messages."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.models import Audit
from brokerage.models import Job
from tests.builders import parameters, submitted
from tests.flow.steps import run_agents
from workqueues.admin import tasks as admin_tasks
from workqueues.models import Task, TaskChange

LIST = "/admin/workqueues/task/"

pytestmark = pytest.mark.django_db


def act(client: Client, action: str, *tasks: Task) -> list[str]:
    """Choose the tasks and the action: the messages that follow."""
    answer: Any = client.post(LIST, {"action": action, "_selected_action": [t.pk for t in tasks]}, follow=True)
    assert answer.status_code == 200
    return [str(m) for m in answer.context["messages"]]


def staff(name: str, *roles: tuple[str, str]) -> Client:
    """Somebody who may look at tasks in the admin."""
    user = ensure_user(name, roles=list(roles))
    user.is_staff = True
    user.save()
    user.user_permissions.set(Permission.objects.filter(codename="view_task"))
    client = Client()
    client.force_login(user)
    return client


def status(task: Task) -> str:
    task.refresh_from_db()
    return task.status


def test_selected_tasks_are_run_again_on_what_is_new(root: Client) -> None:
    ended, live = (submitted(parameters(f"t{n}")) for n in range(2))
    Task.objects.filter(id=ended.id).update(status="aborting")
    Task.objects.filter(id=ended.id).update(status="aborted", ended_at="2026-01-01T00:00:00Z")
    said = act(root, "incexec", ended, live)
    assert said[0] == "1 task is being run again with new input."
    assert "incexec is accepted in" in said[1]
    assert (status(ended), status(live)) == ("toincexec", "registered")


def test_kill_finish_and_retry_go_through_the_ledger(root: Client) -> None:
    killed, finished, retried = (submitted(parameters(f"t{n}")) for n in range(3))
    Task.objects.filter(id=retried.id).update(status="aborting")
    Task.objects.filter(id=retried.id).update(status="aborted", ended_at="2026-01-01T00:00:00Z")
    assert act(root, "kill", killed) == ["1 task is being killed."]
    assert act(root, "finish_softly", finished) == ["1 task is being finished."]
    assert act(root, "retry", retried) == ["1 task is being retried."]
    assert (status(killed), status(finished), status(retried)) == ("aborting", "finishing", "toretry")
    assert set(TaskChange.objects.filter(old="registered").values_list("who", flat=True)) == {"user:root"}
    assert set(Audit.objects.filter(act__startswith="task.").values_list("act", flat=True)) == {
        "task.kill",
        "task.finish",
        "task.retry",
    }


def test_a_finish_now_stops_running_jobs(root: Client, worked: Task) -> None:
    assert act(root, "finish_now", worked) == ["1 task is being finished."]
    run_agents()
    assert Job.objects.get(status="running").kill_requested


def test_who_refuses_says_why_and_the_others_go_on(root: Client) -> None:
    good, bad = submitted(parameters("good")), submitted(parameters("bad"))
    Task.objects.filter(id=bad.id).update(status="tobroken")
    Task.objects.filter(id=bad.id).update(status="broken", ended_at="2026-01-01T00:00:00Z")
    told = act(root, "kill", good, bad)
    assert told[0] == "1 task is being killed."
    assert told[1].startswith(f"Task {bad.id} is broken; kill is accepted in ")


def test_the_rights_are_those_of_the_role(root: Client) -> None:
    task = submitted(parameters())
    told = act(staff("olga", ("other", "operator")), "kill", task)
    neither = f"neither the owner of task {task.id}, nor its submitter with the role production, nor an operator of demo"
    assert told == [f"olga is {neither}."]
    assert status(task) == "registered"
    assert act(staff("otto", ("demo", "operator")), "kill", task) == ["1 task is being killed."]


def test_who_commands_nothing_is_offered_nothing(root: Client) -> None:
    task = submitted(parameters())
    client = staff("rita", ("demo", "auditor"))
    assert "finish_softly" not in client.get(LIST).text
    act(client, "kill", task)
    assert status(task) == "registered"


def test_too_many_at_once_are_refused_whole(root: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_tasks, "MOST_AT_ONCE", 1)
    tasks = [submitted(parameters(f"t{n}")) for n in range(2)]
    assert act(root, "kill", *tasks) == ["At most 1 tasks at once; nothing was done."]
    assert {status(t) for t in tasks} == {"registered"}


def change(client: Client, action: str, value: str, *tasks: Task) -> list[str]:
    """Choose the tasks and the action, with a value: the messages that follow."""
    form = {"action": action, "value": value, "comment": "sooner", "_selected_action": [t.pk for t in tasks]}
    answer: Any = client.post(LIST, form, follow=True)
    assert answer.status_code == 200
    return [str(m) for m in answer.context["messages"]]


@pytest.mark.parametrize(
    ("action", "value", "column", "now"),
    [
        ("change_priority", "900", "current_priority", 900),
        ("change_split_rule", "rule=nMaxFilesPerJob value=7", "split_rule", "NE=10,RS=0,US=1,MF=7"),
        ("change_attributes", "ramCount=4000 walltime=3", "ram_count", 4000),
        ("change_reassign", "site= jobs=nokill", "status", "pending"),
        ("change_release", "", "status", "running"),
        ("change_tries", "3", "status", "running"),
    ],
)
def test_tasks_are_changed_from_the_list(root: Client, worked: Task, action: str, value: str, column: str, now: object) -> None:
    assert change(root, action, value, worked) == ["1 task is changed."]
    worked.refresh_from_db()
    assert getattr(worked, column) == now
    row = Audit.objects.latest("id")
    assert (row.who, row.reason) == ("root", "sooner")


def test_a_value_that_is_not_understood_is_told_and_changes_nothing(root: Client, worked: Task) -> None:
    assert change(root, "change_priority", "soon", worked)[0].startswith("priority: ")
    assert change(root, "change_share", "Nowhere", worked)[0].startswith("share: the VO demo has no leaf share 'Nowhere'")
    assert change(root, "change_attributes", "", worked)[0].startswith("name at least one of ramCount")
    before = worked.current_priority
    worked.refresh_from_db()
    assert worked.current_priority == before
    assert change(staff("ada", ("demo", "submitter")), "change_priority", "900", worked) != ["1 task is changed."]
    worked.refresh_from_db()
    assert worked.current_priority == before


def test_the_jobs_of_a_task_are_killed_from_the_list(root: Client, worked: Task) -> None:
    assert change(root, "kill_jobs", "", worked) == ["1 task is rid of their jobs."]
    assert not Job.objects.filter(status="activated").exists()
    assert Audit.objects.get(act="job.kill").reason == "sooner"


def test_jobs_are_killed_and_retried_from_their_list(root: Client, worked: Task) -> None:
    job = Job.objects.filter(status="activated").earliest("id")
    for action, said in (
        ("kill_selected", "1 job is cancelled; inputs with tries left get other jobs."),
        ("retry_selected", "0 inputs have more tries."),
    ):
        form = {"action": action, "_selected_action": [job.id]}
        answer: Any = root.post("/admin/brokerage/job/", form, follow=True)
        assert next(str(m) for m in answer.context["messages"]) == said
    job.refresh_from_db()
    assert job.status == "cancelled"
