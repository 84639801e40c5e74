"""Datasets of VOs and users: jobs read and write their own, whatever others call theirs; what an upgrade makes of old ones."""

from __future__ import annotations

from importlib import import_module
from io import StringIO
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.models import Audit, Credential, Role
from broker_site.foundation.gdpconfig import set_override
from brokerage.models import StorageEndpoint
from brokerage.queries.job_document import job_document
from brokerage.rules.dispatch.settlement import Report
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import end, let_confirm, run_agents, run_jobs, take
from workqueues.models import CatalogueDataset, CatalogueFile, File, PlannedOutput, Replica, Task

pytestmark = pytest.mark.django_db


def test_two_vos_read_and_write_datasets_of_the_same_names_apart() -> None:
    (queue,) = grid("ALPHA", path="/disks")
    for vo, n in (("demo", 2), ("other", 1)):
        dataset = catalogue_dataset("in.data", n, vo=vo)
        CatalogueFile.objects.filter(dataset=dataset).update(guid=vo, fsize=len(vo))
    tasks = {vo: submitted(reading("t", "in.data", vo=vo, nFilesPerJob=1)) for vo in ("demo", "other")}
    run_agents()
    while Task.objects.exclude(status="done").exists():
        leased = take(queue)
        document = job_document(leased.job_id)
        vo = next(vo for vo, task in tasks.items() if task.id == leased.task_id)
        assert [i["size"] for i in document["inputs"]] == [len(vo)]
        assert len(document["inputs"][0]["sources"]) == 1
        assert {o["path"].split("/t.")[0] for o in document["outputs"]} == {f"/disks/ALPHA/{vo}"}
        end(leased)
        run_agents()
    made = Replica.objects.filter(file__dataset__name="t.OUT").order_by("file__dataset__vo", "path")
    assert list(made.values_list("file__dataset__vo", "path")) == [
        ("demo", "demo/t.OUT/t.OUT.000001.txt"),
        ("demo", "demo/t.OUT/t.OUT.000002.txt"),
        ("other", "other/t.OUT/t.OUT.000001.txt"),
    ]


def test_who_is_second_to_write_to_a_name_is_broken_with_the_reason() -> None:
    """Both were submitted before either dataset was made, so neither could be refused."""
    grid("ALPHA")
    first, second = submitted(parameters("t")), submitted(parameters("t", userName="bob"))
    run_agents(3)
    first.refresh_from_db()
    second.refresh_from_db()
    assert first.status == "running"
    assert second.status == "broken"
    assert second.error_dialog.startswith(f"t.EVT is written by task {first.id} of ada")
    owned = CatalogueDataset.objects.filter(name__startswith="t.").order_by("name").values_list("name", "owner", "state")
    assert list(owned) == [("t.EVT", "ada", "open"), ("t.log", "ada", "open")]


def test_no_two_datasets_share_a_folder() -> None:
    grid("ALPHA")
    names = ["t/x", "t_x", "t/x/", "mc:t_x"]
    for n, name in enumerate(names):
        params = parameters(f"t{n}")
        params["jobParameters"][2]["dataset"] = name
        submitted(params)
    run_agents()
    folders = CatalogueDataset.objects.filter(name__in=names).values_list("folder", flat=True)
    assert len(set(folders)) == len(names)
    assert all(folder.startswith("demo/") and folder.count("/") == 1 for folder in folders)


def migrated(app: str, name: str) -> None:
    """What the migration does to rows of before, on the tables of today."""
    import_module(f"{app}.migrations.{name}").give(None, SimpleNamespace(connection=connection))


def test_an_upgrade_gives_datasets_to_the_vo_of_the_task_that_wrote_them(capsys: pytest.CaptureFixture[str]) -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 2)
    task = submitted(reading("t", "in.data"))
    run_agents()
    run_jobs(queue)
    CatalogueDataset.objects.update(vo="", owner="", folder="")
    migrated("workqueues", "0013_datasets_of_vos")
    rows = CatalogueDataset.objects.order_by("name").values_list("name", "vo", "owner", "folder")
    assert list(rows) == [
        ("in.data", "demo", "", "in.data"),
        ("t.OUT", "demo", "ada", "t.OUT"),
        ("t.log", "demo", "ada", "t.log"),
    ]
    assert capsys.readouterr().out == ""
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"


def test_an_upgrade_knows_the_tasks_that_wrote_to_a_dataset_also_when_they_have_ended() -> None:
    (queue,) = grid("ALPHA")
    task = submitted(parameters("t", nEvents=10))
    run_agents()
    run_jobs(queue)
    run_agents()
    planned = PlannedOutput.objects.values_list("task_id", "writer__dataset_name")
    before = set(planned)
    assert before == {(task.id, "t.EVT"), (task.id, "t.log")}
    PlannedOutput.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute(import_module("workqueues.migrations.0016_submitters_and_writers").ENDED)
    assert set(planned.all()) == before


def test_an_upgrade_parts_what_two_vos_wrote_and_hides_what_may_be_anybodys(capsys: pytest.CaptureFixture[str]) -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 1)
    for vo in ("demo", "other"):
        submitted(parameters("t", vo=vo, nEvents=10))
        run_agents()
        run_jobs(queue)
        run_agents()
    ours, theirs = CatalogueDataset.objects.filter(name="t.EVT").order_by("id")
    CatalogueFile.objects.filter(dataset=theirs).update(lfn="t.EVT.000002.txt")
    CatalogueFile.objects.filter(dataset=theirs).update(dataset=ours)
    File.objects.filter(dataset__vo="other", dataset__dataset_name="t.EVT").update(lfn="t.EVT.000002.txt")
    CatalogueDataset.objects.filter(vo="other").delete()
    CatalogueDataset.objects.update(vo="", owner="", folder="")
    migrated("workqueues", "0013_datasets_of_vos")
    assert "1 imported datasets have no VO" in capsys.readouterr().out
    files = CatalogueFile.objects.filter(dataset__name="t.EVT").order_by("lfn").values_list("dataset__vo", "lfn")
    assert list(files) == [("demo", "t.EVT.000001.txt"), ("other", "t.EVT.000002.txt")]
    assert CatalogueDataset.objects.get(name="in.data").vo == ""


def test_an_upgrade_gives_the_role_production_to_submitters_and_their_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    user = ensure_user("sam", roles=[("demo", "submitter"), ("other", "operator")])
    Credential.objects.create(
        kind="user", user=user, prefix="gbu_12345678", secret="x", claims={"roles": ["submitter", "operator"]}
    )
    migrated("broker_site.foundation.access", "0003_production_role")
    assert set(Role.objects.filter(role="production").values_list("user__username", "vo")) == {("sam", "demo")}
    assert Credential.objects.get(secret="x").claims == {"roles": ["submitter", "operator", "production"]}
    assert Audit.objects.get(act="role.give", reason__startswith="upgrade").object == "user sam"
    assert "1 submitters were given the role production" in capsys.readouterr().out


def printed(*words: str) -> str:
    out = StringIO()
    call_command("catalogue", *words, stdout=out)
    return out.getvalue()


def test_a_list_without_datasets_says_so_beside_its_empty_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert (printed("list"), printed("list", "--vo", "dmeo")) == ("", "")
    assert capsys.readouterr().err.splitlines() == ["every dataset has a VO", "VO dmeo has no datasets"]


def test_an_operator_gives_datasets_that_nobody_has_to_a_vo() -> None:
    for name in ("old.one", "old.two", "new"):
        catalogue_dataset(name, 1, vo="")
    catalogue_dataset("new", 1)
    ensure_user("ada", roles=[("demo", "submitter")])
    assert printed("list").split() == ["new", "closed", "old.one", "closed", "old.two", "closed"]
    assert printed("give", "old.*", "--vo", "demo", "--owner", "ada").splitlines() == [
        "2 datasets given to VO demo",
        "files stay where they lie; new ones go to folders of demo/ below each endpoint",
    ]
    assert printed("list").split() == ["new", "closed"]
    assert printed("list", "--vo", "demo").splitlines() == ["new  closed", "old.one  ada  closed", "old.two  ada  closed"]
    assert Audit.objects.filter(act="dataset.give", vo="demo").count() == 2
    with pytest.raises(CommandError, match="VO demo has a dataset new already; nothing was given"):
        printed("give", "new", "--vo", "demo")
    with pytest.raises(CommandError, match="no dataset of this name is without a VO"):
        printed("give", "nothing", "--vo", "demo")
    with pytest.raises(CommandError, match="no user bob has a role in VO demo"):
        printed("give", "new", "--vo", "demo", "--owner", "bob")


def test_new_files_of_a_given_dataset_go_to_the_folder_of_its_vo_and_old_ones_stay() -> None:
    (queue,) = grid("ALPHA")
    ensure_user("ada", roles=[("other", "submitter")])
    first = submitted(parameters("t", nEvents=10))
    run_agents()
    with pytest.raises(CommandError, match=f"task {first.id} of VO demo, which has not ended, uses t.EVT; nothing was given"):
        printed("give", "t.*", "--from", "demo", "--vo", "other", "--owner", "ada")
    run_jobs(queue)
    run_agents()
    printed("give", "t.*", "--from", "demo", "--vo", "other", "--owner", "ada")
    second = parameters("t", vo="other", nEvents=20)
    second["jobParameters"][2]["value"] = "--out=more.EVT.${SN}.txt"
    second["log"]["value"] = "more.log.${SN}.tgz"
    submitted(second)
    run_agents()
    run_jobs(queue)
    run_agents()
    paths = Replica.objects.filter(file__dataset__name="t.EVT", file__dataset__vo="other").order_by("path")
    assert list(paths.values_list("path", flat=True)) == [
        "demo/t.EVT/t.EVT.000001.txt",
        "other/t.EVT/more.EVT.000001.txt",
        "other/t.EVT/more.EVT.000002.txt",
    ]


def test_a_given_dataset_loses_the_scope_that_is_its_vo() -> None:
    catalogue_dataset("other:data", 1)
    catalogue_dataset("sim:data", 1)
    printed("give", "*data", "--from", "demo", "--vo", "other")
    assert list(CatalogueDataset.objects.order_by("name").values_list("vo", "name", "folder")) == [
        ("other", "data", "other/data"),
        ("other", "sim:data", "other/sim:data"),
    ]
    catalogue_dataset("other:data", 1, vo="third")
    catalogue_dataset("third:x", 1, vo="other")
    with pytest.raises(CommandError, match="VO other has a dataset data already; nothing was given"):
        printed("give", "other:data", "--from", "third", "--vo", "other")


def test_files_of_a_dataset_that_no_vo_has_are_held_and_not_lost_until_it_is_given() -> None:
    (queue,) = grid("ALPHA")
    set_override("core", "POLICY_analysis", "generic", who="ada", why="a closed job closes no queue")
    dataset = catalogue_dataset("in.data", 2)
    task = submitted(reading("t", "in.data"))
    run_agents()
    CatalogueDataset.objects.filter(id=dataset.id).update(vo="")
    StorageEndpoint.objects.update(mark="x")
    names = ["in.data.000000", "in.data.000001"]
    end(take(queue), Report("failed", missing_inputs=names, error_code="INPUT_MISSING"))
    for _ in range(3):
        let_confirm()
        run_agents()
    files = File.objects.filter(task_id=task.id, type="input")
    assert set(files.values_list("status", flat=True)) == {"ready"}
    assert files[0].held.endswith("; VO demo has no dataset in.data in the catalogue")
    StorageEndpoint.objects.update(mark="")
    printed("give", "in.data", "--vo", "demo")
    let_confirm()
    run_agents()
    run_jobs(queue)
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"
