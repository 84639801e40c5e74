"""Running tasks again over REST, pages and the admin: with changes, by name, with what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.models import Audit
from broker_site.foundation.gdpconfig import set_override
from tests.api.people import Person, faults, person
from tests.builders import catalogue_dataset, grid, parameters, reading
from tests.flow.steps import run_agents
from workqueues.models import Dataset, File, Task, TaskChange

pytestmark = pytest.mark.django_db


def ended(ada: Person, state: str = "finished", **more: Any) -> int:
    """A task of ada with a name that must be the only one, which has ended."""
    task_id = int(ada.submit(parameters("one", uniqueTaskName=True, **more)).json()["id"])
    for status in ("aborting", "aborted") if state == "aborted" else ("defined", "ready", "prepared", state):
        over = {"ended_at": "2026-01-01T00:00:00Z"} if status == state and state != "exhausted" else {}
        Task.objects.filter(id=task_id).update(status=status, **over)
    return task_id


def stored(task_id: int) -> dict[str, Any]:
    params: dict[str, Any] = Task.objects.get(id=task_id).params.task_params
    return params


@pytest.mark.parametrize("state", ["finished", "failed", "aborted", "done", "exhausted"])
def test_incexec_with_changes_is_accepted_and_audited(ada: Person, state: str) -> None:
    task_id = ended(ada, state)
    changes = {"nEvents": 80, "includedSite": ["ALPHA"], "nFilesPerJob": None}
    answer = ada.post(f"tasks/{task_id}/incexec/", {"comment": "more", "sole": True, "changes": changes})
    assert (answer.status_code, answer.json()["status"]) == (202, "toincexec")
    shown = ada.get(f"tasks/{task_id}/").json()
    assert (shown["task_params"]["nEvents"], shown["task_params"]["includedSite"]) == (80, ["ALPHA"])
    assert "LS=1" in shown["split_rule"]
    move = ada.get(f"tasks/{task_id}/history/").json()["results"][-1]
    assert (move["who"], move["why"]) == (
        "user:ada", 'sole incexec: more; changed: nEvents 80 (was 40), includedSite ["ALPHA"]'
    )  # fmt: skip
    row = Audit.objects.get(act="task.incexec")
    assert row.before is not None and row.after is not None
    assert row.before["parameters"] == {"nEvents": 40, "includedSite": None, "nFilesPerJob": None}
    assert row.after["parameters"] == {"nEvents": 80, "includedSite": ["ALPHA"], "nFilesPerJob": None}


def test_a_retry_with_changes_is_an_incremental_execution_and_reload_input_takes_none(ada: Person) -> None:
    task_id = ended(ada)
    assert faults(ada.post(f"tasks/{task_id}/reload_input/", {"changes": {"nEvents": 80}})) == {("changes", "unknown")}
    answer = ada.post(f"tasks/{task_id}/retry/", {"changes": {"nEvents": 80}})
    assert (answer.status_code, answer.json()["status"]) == (202, "toincexec")
    assert ada.post(f"tasks/{task_id}/retry/", {"changes": {"nEvents": 80}}).status_code == 202
    assert TaskChange.objects.filter(task_id=task_id, new="toincexec").count() == 1
    assert ada.post(f"tasks/{task_id}/retry/", {"changes": {"nEvents": 90}}).status_code == 409, "another wish is not dropped"
    assert stored(task_id)["nEvents"] == 80


def test_reload_input_of_a_done_task(ada: Person) -> None:
    task_id = ended(ada, "done")
    assert ada.post(f"tasks/{task_id}/reload_input/").json()["status"] == "toincexec"


@pytest.mark.parametrize("verb", ["retry", "incexec"])
def test_what_may_not_change_is_named_with_all_its_faults(ada: Person, verb: str) -> None:
    task_id = ended(ada)
    changes = {"nEventsPerJob": 5, "taskPriority": 10, "nEvents": -1, "sites": "A"}
    answer = ada.post(f"tasks/{task_id}/{verb}/", {"changes": changes})
    assert {
        ("changes.nEventsPerJob", "unchangeable"), ("changes.taskPriority", "unchangeable"), ("changes.sites", "unchangeable"),
        ("changes.nEvents", "range"), ("changes.sites", "unknown"),
    } <= faults(answer)  # fmt: skip
    assert "nearest that may is site" in answer.content.decode()
    assert faults(ada.post(f"tasks/{task_id}/{verb}/", {"changes": "nFiles"})) == {("changes", "not_a_dict")}
    assert Task.objects.get(id=task_id).status == "finished"
    assert stored(task_id) == parameters("one", uniqueTaskName=True)
    assert not Audit.objects.filter(act=f"task.{verb}").exists()


def test_a_broken_task_is_not_run_again_nor_one_of_others(ada: Person, bob: Person) -> None:
    task_id = ended(ada)
    assert bob.post(f"tasks/{task_id}/incexec/", {"changes": {"nEvents": 80}}).status_code == 403
    broken = int(ada.submit(parameters("two")).json()["id"])
    Task.objects.filter(id=broken).update(status="tobroken")
    Task.objects.filter(id=broken).update(status="broken", ended_at="2026-01-01T00:00:00Z")
    answer = ada.post(f"tasks/{broken}/incexec/", {"changes": {"ramCount": 900}})
    assert answer.status_code == 409
    assert "broken" in answer.json()["detail"]
    assert stored(broken) == parameters("two")


def test_a_high_priority_needs_the_role(ada: Person) -> None:
    task_id = ended(ada)
    answer = ada.post(f"tasks/{task_id}/incexec/", {"changes": {"currentPriority": 2000}})
    assert faults(answer, 403) == {("changes.currentPriority", "production")}
    olga = person("olga", ("demo", "operator"), ("demo", "production"))
    assert olga.post(f"tasks/{task_id}/incexec/", {"changes": {"currentPriority": 2000}}).status_code == 202


def test_a_submission_of_the_same_unique_name_runs_an_ended_analysis_again(ada: Person) -> None:
    task_id = ended(ada, "done", nFiles=None)
    answer = ada.submit(parameters("one", uniqueTaskName=True, nEvents=80), key="again")
    assert (answer.status_code, answer.json()["id"], answer.json()["status"]) == (200, task_id, "toincexec")
    assert stored(task_id) == parameters("one", uniqueTaskName=True, nEvents=80)
    move = TaskChange.objects.filter(task_id=task_id).latest("id")
    assert (move.who, move.why) == ("user:ada", "incexec: submitted again; changed: nEvents 80 (was 40)")
    epoch = Task.objects.get(id=task_id).epoch
    repeated = ada.submit(parameters("one", uniqueTaskName=True, nEvents=80), key="again")
    assert (repeated.status_code, repeated.json()["id"]) == (200, task_id)
    assert Task.objects.get(id=task_id).epoch == epoch, "the key gives the command once"
    assert faults(ada.submit(parameters("one", uniqueTaskName=True, nEvents=90))) == {("uniqueTaskName", "unique")}
    assert Task.objects.count() == 1


def test_a_check_tells_that_a_task_would_be_run_again_and_leaves_it_alone(ada: Person) -> None:
    task_id = ended(ada, "done", nFiles=None)
    before = TaskChange.objects.count(), Audit.objects.count()
    answer = ada.post("tasks/check/", parameters("one", uniqueTaskName=True, nEvents=80))
    assert (answer.status_code, answer.json()["again"]) == (200, task_id), answer.content
    assert answer.json()["detail"].startswith(f"task {task_id} of this name would be run again: ")
    assert (Task.objects.get().status, stored(task_id)) == ("done", parameters("one", uniqueTaskName=True))
    assert (TaskChange.objects.count(), Audit.objects.count()) == before


def running(ada: Person, state: str = "running", **more: Any) -> int:
    """A task of ada with a name that must be the only one, which runs; its one input was given up."""
    grid()
    catalogue_dataset("in.data", 3)
    task_id = int(ada.submit(reading("one", "in.data", uniqueTaskName=True, **more)).json()["id"])
    run_agents(1, ("refine", "feed"))
    dataset = Dataset.objects.get(task_id=task_id, type="input")
    for status in ("picked", "running", "failed"):
        File.objects.filter(dataset=dataset, lfn="in.data.000000").update(status=status, attempt_nr=3)
    Dataset.objects.filter(id=dataset.id).update(n_files_used=1, n_files_failed=1)
    if state == "pending":
        Task.objects.filter(id=task_id).update(status="running", old_status="running")
    Task.objects.filter(id=task_id).update(status=state)
    return task_id


@pytest.mark.parametrize("state", ["running", "scouting", "pending"])
def test_a_retry_of_an_analysis_that_runs_is_one_of_its_jobs_and_says_so(ada: Person, state: str) -> None:
    task_id = running(ada, state)
    answer = ada.post(f"tasks/{task_id}/retry/", {"changes": {"nFilesPerJob": 1, "nFiles": 9}, "comment": "more"})
    assert (answer.status_code, answer.json()["status"]) == (202, state)
    assert answer.json()["detail"] == (
        f"Task {task_id} goes on as it is ({state}), and its failed jobs are made again: 1 input file that was given up will "
        "have 5 tries more, and 2 that wait as many. For jobs that are made from now on: nFilesPerJob 1 (was 2). "
        "Kept for when its inputs are read again, as by incexec: nFiles 9."
    )
    assert set(File.objects.filter(task_id=task_id, type="input").values_list("status", "attempt_nr", "max_attempt")) == {
        ("ready", 3, 8), ("ready", 0, 8)
    }  # fmt: skip
    task = Task.objects.get(id=task_id)
    assert (task.attempt_nr, "NF=1" in task.split_rule, stored(task_id)["nFiles"]) == (0, True, 9)
    row = Audit.objects.get(act="task.retry")
    assert row.after is not None
    assert (row.after["given_up"], row.after["parameters"]) == (1, {"nFilesPerJob": 1, "nFiles": 9})


def test_a_retry_of_jobs_keeps_to_its_bounds(ada: Person, petra: Person) -> None:
    task_id = running(ada)
    assert faults(ada.post(f"tasks/{task_id}/retry/", {"changes": {"nEventsPerJob": 5}})) == {
        ("changes.nEventsPerJob", "unchangeable")
    }
    set_override("retry_task", "JOB_MAX_ATTEMPT_user", 3, who="test", why="test")
    assert "the limit is 3 (JOB_MAX_ATTEMPT_user)" in ada.post(f"tasks/{task_id}/retry/").json()["detail"]
    assert File.objects.filter(task_id=task_id, status="failed").count() == 1
    managed = petra.submit(parameters("two", prodSourceLabel="test", userName=None)).json()["id"]
    for status in ("defined", "ready", "running"):
        Task.objects.filter(id=managed).update(status=status)
    answer = petra.post(f"tasks/{managed}/retry/")
    assert answer.status_code == 409
    assert "exhausted; of tasks of analysis also in running, scouting, pending." in answer.json()["detail"]


def test_a_submission_of_the_same_unique_name_retries_the_jobs_of_one_that_runs(ada: Person) -> None:
    task_id = running(ada)
    body = reading("one", "in.data", uniqueTaskName=True, ramCount=900)
    answer = ada.submit(body, key="again")
    assert (answer.status_code, answer.json()["id"], answer.json()["status"]) == (200, task_id, "running")
    assert "its failed jobs are made again: 1 input file" in answer.json()["detail"]
    assert (Task.objects.get(id=task_id).ram_count, stored(task_id)) == (900, body)
    repeated = ada.submit(body, key="again")
    assert (repeated.status_code, "detail" in repeated.json()) == (200, False)
    assert set(File.objects.filter(task_id=task_id, type="input").values_list("max_attempt", flat=True)) == {8}, "once"


def test_the_page_of_an_analysis_that_runs_retries_its_jobs(ada: Person) -> None:
    task_id, client = running(ada), browser("ada")
    assert f"/tasks/{task_id}/command/retry/" in client.get(f"/tasks/{task_id}/").text
    answer = client.post(f"/tasks/{task_id}/command/retry/")
    assert "its failed jobs are made again" in client.get(answer["Location"]).text
    assert Task.objects.get(id=task_id).status == "running"


def test_a_parameter_that_the_new_body_leaves_out_is_taken_away(ada: Person) -> None:
    task_id = ended(ada, "aborted", includedSite=["ALPHA"], ramCount=900, skipScout=True)
    answer = ada.submit(parameters("one", uniqueTaskName=True, nEvents=40.0))
    assert answer.status_code == 200
    task = Task.objects.get(id=task_id)
    assert "includedSite" not in stored(task_id)
    assert (task.ram_count, "LS" in task.split_rule) == (500, False)


def test_a_submission_that_changes_what_may_not_change_is_refused(ada: Person) -> None:
    task_id = ended(ada)
    body = parameters("one", uniqueTaskName=True, nEventsPerJob=5, transPath="other.py")
    assert faults(ada.submit(body)) == {("nEventsPerJob", "unchangeable"), ("transPath", "unchangeable")}
    assert (Task.objects.get(id=task_id).status, Task.objects.count()) == ("finished", 1)


def test_production_is_not_run_again_by_its_name(petra: Person) -> None:
    task_id = ended(petra, "done", prodSourceLabel="test", userName=None)
    answer = petra.submit(parameters("one", uniqueTaskName=True, prodSourceLabel="test", userName=None))
    assert faults(answer) == {("uniqueTaskName", "unique")}
    assert f"task {task_id} of this name is done" in answer.json()["detail"]


def browser(name: str) -> Client:
    """A submitter of demo in a browser."""
    client = Client()
    client.force_login(ensure_user(name, roles=[("demo", "submitter")]))
    return client


def test_the_page_of_an_ended_task_runs_it_again_with_what_is_typed(ada: Person) -> None:
    task_id, client = ended(ada), browser("ada")
    shown = client.get(f"/tasks/{task_id}/").text
    assert f"/tasks/{task_id}/command/incexec/" in shown
    assert "Reload input" in shown
    answer = client.post(f"/tasks/{task_id}/command/incexec/", {"changes": '{"nEvents": 80}', "sole": "1", "comment": "more"})
    assert answer.status_code == 302
    assert "is being run again with new input" in client.get(answer["Location"]).text
    task = Task.objects.get(id=task_id)
    assert (task.status, task.command_comment, stored(task_id)["nEvents"]) == ("toincexec", "sole incexec: more", 80)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("nEvents=80", "changes: "),
        ("[1]", "expected an object"),
        ('{"nEventsPerJob": 5}', "nEventsPerJob: may not change"),
        ('{"nEvents": 1, "nEvents": 2}', "twice"),
    ],
)
def test_what_is_typed_wrongly_on_the_page_is_told_and_changes_nothing(ada: Person, typed: str, words: str) -> None:
    task_id, client = ended(ada), browser("ada")
    answer = client.post(f"/tasks/{task_id}/command/incexec/", {"changes": typed})
    assert words in client.get(answer["Location"]).text
    assert (Task.objects.get(id=task_id).status, stored(task_id)["nEvents"]) == ("finished", 40)
