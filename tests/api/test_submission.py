"""Submitting a task: what is registered, and every way of being refused, with all faults at once and nothing changed."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.cache import cache
from pytest_django import Settings

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.credentials import issue_user_token
from broker_site.foundation.access.models import Audit, User
from broker_site.foundation.gdpconfig import BadConfig, set_override
from tests.api.people import Person, faults, person
from tests.builders import catalogue_dataset, parameters, reading
from workqueues.models import CatalogueFile, Submission, Task, TaskChange, TaskParams
from workqueues.rules.task_parameters import not_yet

pytestmark = pytest.mark.django_db


def nothing_registered() -> bool:
    return not Task.objects.exists() and not TaskParams.objects.exists() and not Submission.objects.exists()


def test_a_task_is_registered_and_told_whole(ada: Person) -> None:
    answer = ada.submit(parameters("t1"))
    assert answer.status_code == 201
    told = answer.json()
    assert (told["task_name"], told["user_name"], told["vo"], told["status"]) == ("t1", "ada", "demo", "registered")
    assert told["task_params"] == parameters("t1")
    assert told["parent_tid"] == told["id"]
    assert answer["Location"].endswith(f"/api/v1/tasks/{told['id']}/")
    assert ada.get(f"tasks/{told['id']}/").json() == told
    assert list(TaskChange.objects.values_list("old", "new", "who")) == [("-", "registered", "user:ada")]
    row = Audit.objects.get(act="task.submit")
    assert (row.who, row.vo, row.object, row.outcome) == ("ada", "demo", f"task {told['id']}", "done")


def test_a_task_is_checked_as_a_submission_is_and_nothing_is_kept(ada: Person) -> None:
    wrong = parameters("t1", nEvents="many", nEvent=3)
    assert faults(ada.post("tasks/check/", wrong), 422) == faults(ada.submit(wrong), 422)
    audited = Audit.objects.count()
    checked = ada.post("tasks/check/", parameters("t1"))
    assert checked.status_code == 200, checked.content
    told = checked.json()
    assert (told["detail"], told["again"], told["user_name"], told["parents"]) == ("nothing is wrong with it", None, "ada", [])
    assert nothing_registered()
    assert Audit.objects.count() == audited
    made = ada.submit(parameters("t1")).json()
    assert made["notes"] == told["notes"]
    for _ in range(3):
        assert ada.post("tasks/check/", parameters("t2")).status_code == 200
    assert ada.submit(parameters("t2")).json()["id"] == made["id"] + 1  # a trial takes no number


def test_a_task_with_a_step_before_the_others_may_leave_open_what_that_fills_in(ada: Person) -> None:
    step = {"transPath": "choose.py"}
    answer = ada.submit(reading("t1", "CHOSEN", preproSpec=step, nFiles="N_FILES"))
    assert answer.status_code == 201, answer.content
    assert ada.submit(reading("t2", "CHOSEN", preproSpec=step)).status_code == 201
    assert faults(ada.submit(reading("t3", "CHOSEN", nFiles="N_FILES")), 422) == {
        ("nFiles", "type"),
        ("jobParameters[0].dataset", "dataset"),
    }
    assert faults(ada.submit(reading("t3", "CHOSEN", preproSpec={})), 422) == {("jobParameters[0].dataset", "dataset")}
    wrong = ada.submit(reading("t3", "CHOSEN", preproSpec={"jobParameters": "${IN}"}))
    assert faults(wrong, 422) == {("preproSpec.transPath", "required"), ("preproSpec.jobParameters", "template")}


def test_a_user_with_more_active_tasks_than_the_limit_submits_again_when_some_have_ended(ada: Person, bob: Person) -> None:
    name = "MAX_ACTIVE_TASKS_PER_USER_user"
    gdpconfig.set_override("dbproxy", name, 1, app="pandaserver", who="test", why="few at once")
    first = ada.submit(parameters("t1"), key="k1")
    assert ada.submit(parameters("t2")).status_code == 201
    refusal = ada.submit(parameters("t3"))
    assert faults(refusal, 429) == {("userName", "active_tasks")}
    assert "ada has more than 1 active user tasks in VO demo" in refusal.json()["detail"]
    assert Task.objects.count() == 2
    assert ada.submit(parameters("t1"), key="k1").json()["id"] == first.json()["id"]
    assert bob.submit(parameters("t4", userName="bob")).status_code == 201
    assert ada.post(f"tasks/{first.json()['id']}/kill/").status_code == 202
    assert ada.submit(parameters("t3")).status_code == 201


def test_a_limit_of_no_active_task_lets_one_in(ada: Person) -> None:
    name = "MAX_ACTIVE_TASKS_PER_USER_user"
    gdpconfig.set_override("dbproxy", name, 0, app="pandaserver", who="test", why="one at a time")
    assert [ada.submit(parameters(task)).status_code for task in ("t1", "t2")] == [201, 429]


def test_the_owner_is_the_caller_when_the_body_does_not_say(ada: Person) -> None:
    assert ada.submit(parameters(userName=None)).json()["user_name"] == "ada"


@pytest.mark.parametrize("kind", ["a submitter", "an operator"])
def test_who_has_not_the_role_production_does_not_submit_for_somebody_else(
    ada: Person, olga: Person, bob: Person, kind: str
) -> None:
    refusal = {"a submitter": ada, "an operator": olga}[kind].submit(parameters(userName="bob"))
    assert faults(refusal, 403) == {("userName", "production")}
    assert "needs the role production in VO demo" in refusal.json()["detail"]
    assert nothing_registered()


def test_who_has_the_role_production_submits_for_a_user_with_a_role_in_the_vo(petra: Person, ada: Person, eve: Person) -> None:
    assert petra.submit(parameters(userName="ada")).json()["user_name"] == "ada"
    row = Audit.objects.get(act="task.submit")
    assert (row.who, row.after) == ("petra", {"task_name": "t1", "user_name": "ada"})


@pytest.mark.parametrize("nobody", ["<i>none", "roleless", "eve", "gone"])
def test_a_task_is_not_submitted_for_nobody(petra: Person, eve: Person, nobody: str) -> None:
    person("roleless")
    person("gone", ("demo", "submitter"))
    User.objects.filter(username="gone").update(is_active=False)
    assert faults(petra.submit(parameters(userName=nobody))) == {("userName", "user")}
    assert nothing_registered()


PRODUCTION_ONLY: list[tuple[str, Any]] = [
    ("prodSourceLabel", "managed"),
    ("taskType", "prod"),
    ("taskPriority", 1001),
    ("currentPriority", 999_999_999),
]


@pytest.mark.parametrize(("name", "value"), PRODUCTION_ONLY, ids=[name for name, _ in PRODUCTION_ONLY])
def test_label_type_and_priorities_of_production_need_its_role(ada: Person, petra: Person, name: str, value: Any) -> None:
    wish = {"userName": None, name: value}
    refusal = ada.submit(parameters(**wish))
    assert faults(refusal, 403) == {(name, "production")}
    assert "needs the role production in VO demo, which ada does not have" in refusal.json()["detail"]
    assert nothing_registered()
    assert petra.submit(parameters(**wish)).status_code == 201


def test_the_role_production_of_another_vo_is_none_here(db: None) -> None:
    pam = person("pam", ("demo", "submitter"), ("other", "production"))
    assert faults(pam.submit(parameters(userName=None, taskType="prod")), 403) == {("taskType", "production")}


def test_a_token_without_the_role_production_has_it_not_though_its_user_has(petra: Person) -> None:
    limited = issue_user_token(User.objects.get(username="petra"), roles=["submitter"]).text
    assert faults(Person("petra", limited).submit(parameters(userName=None, taskType="prod")), 403) == {
        ("taskType", "production")
    }


def test_every_submitter_has_the_priorities_up_to_a_thousand(ada: Person) -> None:
    assert ada.submit(parameters(taskPriority=1000, currentPriority=1000)).status_code == 201


def test_a_label_or_type_that_is_nearly_one_of_ours_is_noted(ada: Person) -> None:
    told = ada.submit(parameters(prodSourceLabel="mangaed", taskType="prdo")).json()
    assert any("prodSourceLabel: 'mangaed'" in note and "managed" in note for note in told["notes"])
    assert any("taskType: 'prdo'" in note and "prod" in note for note in told["notes"])
    assert not any("taskType" in note for note in ada.submit(parameters("t2")).json()["notes"])


def test_a_task_of_another_vo_is_refused(ada: Person) -> None:
    assert faults(ada.submit(parameters(vo="other")), 403) == set()
    assert nothing_registered()


@pytest.mark.parametrize(("roles", "superuser"), [([("demo", "operator")], False), ([("demo", "auditor")], False), ([], True)])
def test_who_is_no_submitter_does_not_submit(db: None, roles: list[tuple[str, str]], superuser: bool) -> None:
    answer = person("max", *roles, superuser=superuser).submit(parameters(userName="max"))
    assert answer.status_code == 403
    assert nothing_registered()


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"taskNmae": "x"}, "taskNmae", "unknown"),
    ({"taskName": None}, "taskName", "required"),
    ({"vo": None}, "vo", "required"),
    ({"vo": 7}, "vo", "type"),
    ({"transPath": None}, "transPath", "required"),
    ({"taskPriority": "high"}, "taskPriority", "type"),
    ({"taskPriority": 1.5}, "taskPriority", "type"),
    ({"coreCount": -1}, "coreCount", "range"),
    ({"maxAttempt": 0}, "maxAttempt", "range"),
    ({"goal": 101}, "goal", "range"),
    ({"workingGroup": "g" * 33}, "workingGroup", "length"),
    ({"ramUnit": "Byte"}, "ramUnit", "format"),
    ({"transPath": "../../bin/sh"}, "transPath", "format"),
    ({"nFilesPerJob": 5, "nMaxFilesPerJob": 2}, "nFilesPerJob", "contradiction"),
    ({"nEventsPerJob": 10, "nEventsPerRange": 5}, "nEventsPerJob", "contradiction"),
    ({"site": "A", "excludedSite": ["A"]}, "excludedSite", "contradiction"),
    ({"jobParameters": []}, "jobParameters", "required"),
    ({"jobParameters": "run"}, "jobParameters", "type"),
    ({"jobParameters": [{"value": "x"}]}, "jobParameters[0].type", "required"),
    ({"jobParameters": [{"type": "template", "value": "x"}]}, "jobParameters[0].param_type", "required"),
    ({"jobParameters": [{"type": "constant", "value": "${WHAT}"}]}, "jobParameters[0].value", "template"),
    ({"useSecrets": True}, "useSecrets", "not_supported_yet"),
    ({"parentTaskName": "nobody"}, "parentTaskName", "parent"),
]


@pytest.mark.parametrize(("change", "field", "rule"), WRONG, ids=[f"{field}-{rule}" for _, field, rule in WRONG])
def test_a_fault_is_told_with_its_field_and_rule(ada: Person, change: dict[str, Any], field: str, rule: str) -> None:
    assert (field, rule) in faults(ada.submit(parameters() | change))
    assert nothing_registered()


def test_all_faults_are_told_at_once_those_of_catalogue_and_parent_too(ada: Person) -> None:
    found = faults(ada.submit(reading("t", "no.such", taskPriority="high", coreCuont=1, parentTaskName="nobody", pushJob=True)))
    assert {
        ("taskPriority", "type"),
        ("coreCuont", "unknown"),
        ("pushJob", "not_supported_yet"),
        ("parentTaskName", "parent"),
        ("jobParameters[0].dataset", "dataset"),
    } <= found


def test_whatever_is_not_supported_yet_is_refused_in_words(ada: Person) -> None:
    answer = ada.submit(parameters() | dict.fromkeys(not_yet(), "x"))
    assert {(name, "not_supported_yet") for name in not_yet()} <= faults(answer)
    told = {e["field"]: e["message"] for e in answer.json()["errors"] if e["rule"] == "not_supported_yet"}
    assert all(told[name].endswith("Not supported yet") for name in not_yet())


def test_tasks_whose_files_are_left_out_must_be_there_and_of_the_same_vo(ada: Person) -> None:
    first = ada.submit(parameters("first")).json()["id"]
    assert ada.submit(parameters("second", skipFilesUsedBy=first)).status_code == 201
    Task.objects.filter(id=first).update(vo="other")
    answer = ada.submit(parameters("third", skipFilesUsedBy=[first, 999_999]))
    told = {(e["field"], e["rule"], e["message"]) for e in answer.json()["errors"]}
    assert told == {("skipFilesUsedBy", "exists", f"VO demo has no task {n}") for n in (first, 999_999)}


def test_an_input_that_does_not_exist_is_a_fault_unless_it_is_the_parents_or_waited_for(ada: Person) -> None:
    assert faults(ada.submit(reading("t", "no.such"))) == {("jobParameters[0].dataset", "dataset")}
    assert ada.submit(reading("waits", "no.such", waitInput=True)).status_code == 201
    catalogue_dataset("there", 1)
    assert ada.submit(reading("reads", "there")).status_code == 201
    parent = ada.submit(parameters("parent")).json()["id"]
    child = ada.submit(reading("child", "parent.EVT", parentTaskName="parent"))
    assert (child.status_code, child.json()["parent_tid"]) == (201, parent)


def test_events_that_the_catalogue_does_not_know_are_a_fault_where_the_task_counts_them(ada: Person) -> None:
    catalogue_dataset("there", 2)
    wanting = {"nFilesPerJob": None, "nEventsPerJob": 15}
    assert ada.submit(reading("counted", "there", **wanting)).status_code == 201
    CatalogueFile.objects.filter(lfn="there.000001").update(n_events=None)
    assert faults(ada.submit(reading("t", "there", **wanting))) == {("nEventsPerJob", "events")}
    assert ada.submit(reading("said", "there", nEventsPerInputFile=10, **wanting)).status_code == 201


def test_a_parent_that_ended_badly_is_a_fault(ada: Person) -> None:
    parent = ada.submit(parameters("parent")).json()["id"]
    ada.post(f"tasks/{parent}/kill/")
    assert ada.submit(reading("child", "parent.EVT", parentTaskName="parent")).status_code == 201
    Task.objects.filter(id=parent).update(status="aborted", ended_at="2026-01-01T00:00:00Z")
    answer = ada.submit(reading("child", "parent.EVT", parentTaskName="parent"))
    assert faults(answer) == {("parentTaskName", "parent")}
    assert "aborted" in answer.json()["detail"]


def test_the_parent_is_a_task_of_the_same_user(ada: Person, bob: Person) -> None:
    bob.submit(parameters("parent", userName=None))
    assert ("parentTaskName", "parent") in faults(ada.submit(reading("child", "parent.EVT", parentTaskName="parent")))


def test_a_unique_name_is_taken_once(ada: Person, olga: Person) -> None:
    unique = parameters("one", uniqueTaskName=True)
    first = ada.submit(unique).json()["id"]
    answer = ada.submit(unique)
    assert faults(answer) == {("uniqueTaskName", "unique")}
    assert f"task {first}" in answer.json()["detail"]
    one = {"taskName": "one"}  # each writes to datasets of its own
    assert ada.submit(parameters("two") | one).status_code == 201, "a task that need not be the only one"
    assert olga.submit(parameters("three", uniqueTaskName=True, userName=None) | one).status_code == 201, "another user's"
    assert ada.submit(parameters("four", uniqueTaskName=True, prodSourceLabel="test") | one).status_code == 201, "another label's"


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"", 400, "no body"),
        (b"{", 400, "line 1 column 2"),
        (b"[1]", 400, "JSON object"),
        (b'"text"', 400, "JSON object"),
        (b"null", 400, "JSON object"),
        (b'{"a": 1, "a": 2}', 400, "twice"),
        (b'{"a": "\\u0000"}', 400, "NUL"),
        (b'{"a": "\0"}', 400, "NUL"),
        (b'{"a": "\\ud800"}', 400, "surrogate"),
        (b'{"a": NaN}', 400, "NaN"),
        (b'{"a": 1e999}', 400, "out of range"),
        (b'{"a": 99999999999999999999}', 400, "64 bits"),
        (b"\xff\xfe", 400, "UTF-8"),
        (b"[" * 100_000, 400, "Nested"),
        (b'{"a": "' + b"x" * 5_000_001 + b'"}', 413, "5000000 bytes"),
    ],
    ids=["empty", "broken", "list", "text", "null", "twice", "escaped NUL", "NUL", "surrogate", "NaN", "huge float", "huge int",
         "not UTF-8", "deep", "big"],
)  # fmt: skip
def test_a_body_that_is_no_json_object_is_a_4xx_and_changes_nothing(ada: Person, body: bytes, status: int, words: str) -> None:
    answer = ada.submit(body)
    faults(answer, status)
    assert words in answer.json()["detail"]
    assert nothing_registered()


def test_another_content_type_is_refused_and_told_what_to_send(ada: Person) -> None:
    answer = ada._client().post("/api/v1/tasks/", "a=1", content_type="application/x-www-form-urlencoded")
    assert (answer.status_code, answer.json()["detail"]) == (415, "Send application/json.")
    assert nothing_registered()


def test_no_field_of_the_tables_can_be_written_past_the_rules(ada: Person) -> None:
    columns = [f.name for f in Task._meta.concrete_fields if f.name != "vo"]
    answer = ada.submit(parameters() | dict.fromkeys(columns, "1"))
    assert {(name, "unknown") for name in ("id", "status", "epoch", "user_name", "locked_by", "ended_at")} <= faults(answer)
    assert nothing_registered()


def test_too_many_submissions_must_wait(ada: Person, bob: Person, settings: Settings) -> None:
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "DEFAULT_THROTTLE_RATES": {"submit": "2/hour"}}
    cache.clear()
    assert [ada.submit(parameters(f"t{n}")).status_code for n in range(3)] == [201, 201, 429]
    answer = ada.submit(parameters("t4"))
    assert int(answer["Retry-After"]) > 0
    assert bob.submit(parameters("t5", userName="bob")).status_code == 201
    assert ada.get("tasks/").status_code == 200


def test_trials_are_no_submissions_of_the_limit_and_have_one_of_their_own(ada: Person, settings: Settings) -> None:
    rates = {"submit": "1/hour", "check": "3/hour"}
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "DEFAULT_THROTTLE_RATES": rates}
    cache.clear()
    assert [ada.post("tasks/check/", parameters("t1")).status_code for _ in range(4)] == [200, 200, 200, 429]
    assert [ada.submit(parameters(f"t{n}")).status_code for n in range(2)] == [201, 429]


@pytest.mark.parametrize("label", ["user ", " user", "us\u202eer", "\u3000user"])
def test_a_label_that_cannot_stand_in_a_name_of_the_configuration_is_refused(ada: Person, label: str) -> None:
    assert faults(ada.submit(parameters(prodSourceLabel=label))) == {("prodSourceLabel", "characters")}
    assert not Task.objects.exists()


def test_only_members_submit_for_a_working_group_once_somebody_says_who_is_in_it(ada: Person, bob: Person, petra: Person) -> None:
    assert ada.submit(parameters("t1", workingGroup="TOP")).status_code == 201, "nobody is asked yet"
    set_override("prio_mgr", "WORKING_GROUP_MEMBERS", {"HIGG": ["ada"]}, app="pandaserver", who="olga", why="caps")
    assert ada.submit(parameters("t2", workingGroup="HIGG")).status_code == 201
    assert ada.submit(parameters("t3")).status_code == 201
    for who, group in ((bob, "HIGG"), (ada, "TOP"), (ada, " HIGG"), (ada, "higg")):
        answer = who.submit(parameters("t4", userName=who.name, workingGroup=group))
        assert faults(answer, 403) == {("workingGroup", "production")}
        assert f"which {who.name} is not in, needs the role production" in answer.json()["detail"]
    assert petra.submit(parameters("t5", userName="petra", workingGroup="TOP")).status_code == 201
    assert Task.objects.count() == 4


@pytest.mark.parametrize("value", [[], {"HIGG": "ada"}, {"HIGG": [7]}, {"HIGG": [""]}, "ada"])
def test_members_of_groups_that_are_none_are_refused(db: None, value: object) -> None:
    with pytest.raises(BadConfig):
        set_override("prio_mgr", "WORKING_GROUP_MEMBERS", value, app="pandaserver", who="olga", why="caps")
