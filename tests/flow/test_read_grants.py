"""Reading datasets of another VO by a grant: jobs get the files; withdrawn, jobs go on, new input waits, nothing is lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from broker_site.foundation.access.credentials import ensure_user, issue_user_token
from broker_site.foundation.access.models import User
from broker_site.foundation.gdpconfig import set_override
from brokerage.models import ComputingQueue, Job, StorageEndpoint
from brokerage.queries.job_document import job_document
from brokerage.rules.dispatch.settlement import Report
from tests.api.people import Person, faults, person
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import end, good, let_confirm, run_agents, run_jobs, take
from workqueues.ledger.commands import command
from workqueues.models import CatalogueDataset, CatalogueFile, Dataset, File, ReadGrant, Task

pytestmark = pytest.mark.django_db


def grant(**columns: Any) -> ReadGrant:
    """Tasks of VO cms may read what is called in.* in VO demo."""
    values = {"vo": "demo", "pattern": "in.*", "grantee_kind": "vo", "grantee": "cms", "made_by": "test", **columns}
    return ReadGrant.objects.create(**values)


def reader(name: str = "t", dataset: str = "demo:in.data", **more: Any) -> dict[str, Any]:
    return reading(name, dataset, vo="cms", nFilesPerJob=1, **more)


def status_of(task: Task) -> tuple[str, str]:
    task.refresh_from_db()
    return task.status, task.error_dialog


def looked_at_again() -> None:
    """The pause of waiting tasks is over."""
    Task.objects.filter(status="pending").update(next_look_at=timezone.now() - timedelta(hours=1))
    run_agents()


@pytest.fixture
def queue() -> ComputingQueue:
    (queue,) = grid("ALPHA", path="/disks")
    catalogue_dataset("in.data", 2)
    return queue


def test_jobs_read_the_files_of_the_vo_that_has_them(queue: ComputingQueue) -> None:
    """Also where the own VO has a dataset of the same name."""
    catalogue_dataset("in.data", 1, vo="cms", size=5)
    grant()
    task = submitted(reader())
    run_agents()
    dataset = Dataset.objects.get(task=task, type="input")
    assert (dataset.dataset_name, dataset.vo, dataset.data_vo, dataset.n_files) == ("demo:in.data", "cms", "demo", 2)
    document = job_document(take(queue).job_id)
    (source,) = document["inputs"]
    assert source["dataset"] == "demo:in.data"
    assert source["size"] == 1000
    assert [copy["path"] for copy in source["sources"]] == [f"/disks/ALPHA/{source['lfn']}"]
    assert {output["path"].split("/t.")[0] for output in document["outputs"]} == {"/disks/ALPHA/cms"}


def test_the_own_vos_dataset_of_that_scope_comes_first(queue: ComputingQueue) -> None:
    catalogue_dataset("demo:in.data", 1, vo="cms")
    grant()
    task = submitted(reader())
    run_agents()
    dataset = Dataset.objects.get(task=task, type="input")
    assert (dataset.data_vo, dataset.n_files) == ("", 1)


def test_a_task_reads_to_its_end_and_writes_to_its_own_vo(queue: ComputingQueue) -> None:
    grant(grantee_kind="user", grantee="ada")
    task = submitted(reader())
    run_agents()
    run_jobs(queue)
    run_agents()
    assert status_of(task) == ("done", "")
    assert CatalogueDataset.objects.get(name="t.OUT").vo == "cms"
    assert CatalogueFile.objects.filter(dataset__name="in.data").count() == 2


def test_a_withdrawn_grant_lets_jobs_end_and_holds_new_input_until_there_is_one_again(queue: ComputingQueue) -> None:
    set_override("core", "POLICY_analysis", "generic", who="ada", why="a failed job closes no queue")
    row = grant()
    task = submitted(reader())
    run_agents()
    running = take(queue)
    failing = take(queue)
    row.delete()
    end(running)
    end(failing, Report("failed", error_code="PAYLOAD_FAILED"))
    run_agents()
    assert Job.objects.get(id=running.job_id).status == "finished"
    status, why = status_of(task)
    assert status == "pending"
    assert why.startswith("waiting for the input demo:in.data, which is no longer open to its VO and owner")
    looked_at_again()
    assert status_of(task) == (status, why)
    assert sorted(File.objects.filter(task_id=task.id, type="input").values_list("status", flat=True)) == ["finished", "ready"]
    grant()
    looked_at_again()
    run_jobs(queue)
    run_agents()
    assert status_of(task) == ("done", "")


@pytest.mark.parametrize("agents", [[], ["refine"]])
def test_a_task_whose_grant_goes_before_it_is_fed_waits(queue: ComputingQueue, agents: list[str]) -> None:
    row = grant()
    task = submitted(reader())
    run_agents(1, agents)
    task.refresh_from_db()
    assert task.status == ("defined" if agents else "registered")
    ReadGrant.objects.filter(id=row.id).update(ends_at=timezone.now() - timedelta(hours=1))
    run_agents()
    status, why = status_of(task)
    assert status == "pending"
    assert why.startswith("waiting for the input demo:in.data, which is no longer open")
    ReadGrant.objects.filter(id=row.id).update(ends_at=timezone.now() + timedelta(days=1))
    looked_at_again()
    run_jobs(queue)
    run_agents()
    assert status_of(task) == ("done", "")


def test_who_waits_for_input_that_he_never_could_read_does_not_learn_that_it_is_there(queue: ComputingQueue) -> None:
    tasks = [submitted(reader(f"t{n}", name, waitInput=True)) for n, name in enumerate(("demo:in.data", "demo:in.none"))]
    run_agents()
    there, absent = map(status_of, tasks)
    assert there == ("pending", "waiting for the input demo:in.data")
    assert absent == ("pending", "waiting for the input demo:in.none")


def test_who_adds_input_that_he_may_not_read_does_not_learn_that_it_is_there(queue: ComputingQueue) -> None:
    catalogue_dataset("own.data", 2, vo="cms")
    task = submitted(reader("t", "own.data", maxAttempt=1))
    run_agents()
    run_jobs(queue, Report("failed", error_code="PAYLOAD_FAILED"))
    run_agents()
    said = []
    for name in ("demo:in.data", "demo:in.none"):
        command(task.id, "incexec", "user:eve", changes={"dsForIN": name})
        run_agents()
        status, why = status_of(task)
        assert status == "pending"
        said.append(why.replace(name, "it"))
        command(task.id, "kill", "user:eve")
        run_agents()
    assert said[0] == said[1] == "jobParameters[0].dataset: the catalogue has no dataset it"


def test_files_of_another_vo_that_jobs_could_not_read_are_looked_for_there(queue: ComputingQueue) -> None:
    set_override("core", "POLICY_analysis", "generic", who="ada", why="a closed job closes no queue")
    StorageEndpoint.objects.update(mark="x")
    grant()
    task = submitted(reader())
    run_agents()
    end(take(queue), Report("failed", missing_inputs=["in.data.000000", "in.data.000001"], error_code="INPUT_MISSING"))
    let_confirm()
    run_agents()
    held = File.objects.filter(task_id=task.id, type="input").exclude(held="").values_list("held", flat=True)
    assert not [why for why in held if "has no dataset" in why]


def test_a_dataset_that_a_task_of_another_vo_reads_is_not_given_away(queue: ComputingQueue) -> None:
    grant()
    ensure_user("ada", roles=[("other", "submitter")])
    task = submitted(reader())
    run_agents()
    with pytest.raises(CommandError, match=f"task {task.id} of VO cms, which has not ended, uses demo:in.data"):
        call_command("catalogue", "give", "in.data", "--from", "demo", "--vo", "other")


def test_what_is_not_granted_is_refused_as_what_does_not_exist(queue: ComputingQueue) -> None:
    catalogue_dataset("bobs.data", 1, owner="bob")
    catalogue_dataset("eves.data", 1, owner="eve")
    cid = person("cid", ("cms", "submitter"))
    body = reader(userName=None)
    refused = cid.submit(body)
    assert faults(refused) == {("jobParameters[0].dataset", "dataset")}
    grant(pattern="*.data", owner="bob")
    assert cid.submit(reader("t1", "demo:bobs.data", userName=None)).status_code == 201
    absent = cid.submit(reader("t2", "demo:none.data", userName=None)).json()
    for name in ("eves.data", "in.data"):
        answer = cid.submit(reader("t2", f"demo:{name}", userName=None)).json()
        assert str(answer["errors"]).replace(name, "none.data") == str(absent["errors"])


def test_who_has_a_role_in_the_vo_of_the_data_needs_no_grant_but_a_token_that_reaches_there(queue: ComputingQueue) -> None:
    both = person("bo", ("cms", "submitter"), ("demo", "auditor"))
    limited = Person("bo", issue_user_token(User.objects.get(username="bo"), vo="cms").text)
    assert faults(limited.submit(reader(userName=None))) == {("jobParameters[0].dataset", "dataset")}
    answer = both.submit(reader(userName=None))
    assert answer.status_code == 201
    run_agents()
    assert Dataset.objects.get(task_id=answer.json()["id"], type="input").n_files == 2


def test_a_task_never_reads_what_the_token_that_submitted_it_did_not_reach(queue: ComputingQueue) -> None:
    """However the name comes into it: filled in by a job, as an input that is waited for, or with a change."""
    both = person("bo", ("cms", "submitter"), ("demo", "auditor"))
    limited = Person("bo", issue_user_token(User.objects.get(username="bo"), vo="cms").text)
    spec = {"transPath": "choose.py"}
    late = limited.submit(reader("t1", userName=None, waitInput=True)).json()["id"]
    filled = limited.submit(reader("t2", "CHOSEN", userName=None, preproSpec=spec)).json()["id"]
    whole = both.submit(reader("t3", "CHOSEN", userName=None, preproSpec=spec)).json()["id"]
    run_agents(2)
    for _ in range(2):
        leased = take(queue)
        end(leased, replace(good(leased.job_id), metadata={"CHOSEN": "demo:in.data"}))
    run_agents(3)
    assert not Dataset.objects.filter(task_id__in=(late, filled), type="input").exists()
    assert status_of(Task.objects.get(id=filled))[0] == "broken"
    assert status_of(task := Task.objects.get(id=whole)) == ("running", "")
    assert task.user_name == "bo", "nobody but the caller says so"
    assert Dataset.objects.get(task_id=whole, type="input").n_files == 2
    catalogue_dataset("in.own", 1, vo="cms")
    own = both.submit(reader("t4", "in.own", userName=None)).json()["id"]
    run_agents(2)
    run_jobs(queue)
    run_agents(3)
    change = {"changes": {"dsForIN": "demo:in.data"}}
    assert limited.post(f"tasks/{own}/incexec/", change).status_code == 403
    assert both.post(f"tasks/{own}/incexec/", change).status_code == 202
