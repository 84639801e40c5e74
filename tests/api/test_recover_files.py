"""Lost files by REST and at the command line: who may say so, what is refused, and what the answer names."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from broker_site.foundation.access.models import Audit
from tests.api.people import Person, faults, person
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import run_agents, run_jobs
from workqueues.models import CatalogueFile, File, Replica, Task

pytestmark = pytest.mark.django_db


@pytest.fixture
def files() -> list[str]:
    """Outputs of a task of ada that is done."""
    (queue,) = grid()
    catalogue_dataset("in.data", 4)
    submitted(reading("t", "in.data"))
    run_agents()
    run_jobs(queue)
    run_agents(3)
    assert Task.objects.get().status == "done"
    return list(CatalogueFile.objects.filter(dataset__name="t.OUT").order_by("lfn").values_list("lfn", flat=True))


@pytest.fixture
def olga() -> Person:
    return person("olga", ("demo", "operator"))


def body(files: list[str], **more: Any) -> dict[str, Any]:
    return {"vo": "demo", "name": "t.OUT", "files": files, **more}


def test_an_operator_has_lost_files_made_again_and_it_is_in_the_audit(olga: Person, files: list[str]) -> None:
    answer = olga.post("datasets/recover/", body(files[:1], comment="the disk broke"))
    assert answer.status_code == 201, answer.content
    (task,) = answer.json()
    assert (task["task_name"], task["user_name"], task["status"]) == ("t.recov1", "ada", "registered")
    row = Audit.objects.get(act="dataset.recover")
    assert (row.who, row.object, row.reason) == ("olga", "dataset t.OUT", "the disk broke")
    assert row.after == {"task": task["id"], "files": files[:1], "n_files": 1}
    assert File.objects.get(lfn=files[0], task__task_name="t").lost_at


def test_a_file_that_nobody_made_is_refused_with_its_name_and_changes_nothing(olga: Person, files: list[str]) -> None:
    answer = olga.post("datasets/recover/", body([files[0], "nobody"]))
    assert answer.status_code == 409
    assert "No job has made a file nobody of t.OUT" in answer.json()["detail"]
    assert Task.objects.count() == 1
    assert CatalogueFile.objects.filter(dataset__name="t.OUT").count() == 2


def test_only_its_owner_and_operators_may_and_others_learn_nothing(files: list[str]) -> None:
    ada, bob = person("ada", ("demo", "submitter")), person("bob", ("demo", "submitter"))
    gus = person("gus", ("guests", "operator"))
    assert bob.post("datasets/recover/", body(files)).status_code == 403
    assert gus.post("datasets/recover/", body(files)).status_code == 404
    assert faults(ada.post("datasets/recover/", body([]))) == {("files", "min_length")}
    assert ada.post("datasets/recover/", body(files)).status_code == 201


def test_a_file_whose_copy_is_intact_is_not_lost_unless_one_insists(olga: Person, files: list[str], tmp_path: Path) -> None:
    from brokerage.models import StorageEndpoint

    StorageEndpoint.objects.update(path=str(tmp_path))
    there = CatalogueFile.objects.get(lfn=files[0])
    path = tmp_path / (Replica.objects.get(file=there).path or files[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"0123456789")
    CatalogueFile.objects.filter(id=there.id).update(checksum="0aff020e")
    answer = olga.post("datasets/recover/", body(files))
    assert answer.status_code == 409
    assert answer.json()["detail"] == f"The file {files[0]} is not lost: its copy at ALPHA_DISK is intact."
    assert olga.post("datasets/recover/", body(files, force=True)).status_code == 201


def test_the_command_line_names_the_tasks(files: list[str]) -> None:
    out = StringIO()
    call_command("catalogue", "recover", "t.OUT", *files, "--vo", "demo", stdout=out)
    assert out.getvalue() == f"task {Task.objects.latest('id').id} makes 2 files of t.OUT again\n"
    with pytest.raises(CommandError, match=r"task \d+ makes .* again already"):
        call_command("catalogue", "recover", "t.OUT", *files, "--vo", "demo")


def test_a_submitted_task_makes_only_files_again_that_are_known_to_be_lost(files: list[str]) -> None:
    ada = person("ada", ("demo", "submitter"))
    again = reading("again", "in.data") | {"oldDatasetName": "t.OUT", "lostFiles": files[:1]}
    again["jobParameters"] = reading("t", "in.data")["jobParameters"]
    assert faults(ada.submit(again)) == {("lostFiles[0]", "lost")}
    assert ("oldDatasetName", "required") in faults(ada.submit({**again, "oldDatasetName": None}))
    assert ("nFiles", "contradiction") in faults(ada.submit({**again, "nFiles": 1}))
    File.objects.filter(lfn=files[0]).update(lost_at="2026-01-01T00:00Z")
    assert ada.submit(again).status_code == 201
