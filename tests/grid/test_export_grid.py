"""`export_grid` and `/api/v1/grid/`: the grid that decisions are made on, taken along as a document."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from broker_site.roof.embedded.instance import ROOT
from brokerage.models import Job, StorageEndpoint
from brokerage.queries.world import load_snapshot
from tests.api.people import person
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents

pytestmark = pytest.mark.django_db

EXAMPLES = Path(ROOT) / "examples"
PEOPLE = {"jobs", "users", "work"}


def printed(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("name", ["demo", "world"])
def test_what_was_exported_is_imported_without_a_change(name: str, tmp_path: Path) -> None:
    call_command("import_grid", str(EXAMPLES / "grids" / f"{name}.json"), verbosity=0)
    exported = tmp_path / "grid.json"
    assert "storage endpoints" in printed("export_grid", str(exported))
    summary = printed("import_grid", str(exported), "--dry-run").splitlines()
    assert summary[-1].startswith("would change: ")
    assert all(part.endswith("(unchanged)") for part in summary[-1].removeprefix("would change: ").split("; ")), summary


def test_decide_takes_the_exported_grid_for_the_one_of_the_database(tmp_path: Path) -> None:
    call_command("import_grid", str(EXAMPLES / "grids" / "demo.json"), verbosity=0)
    exported = tmp_path / "grid.json"
    call_command("export_grid", str(exported), stdout=io.StringIO())
    task = EXAMPLES / "decide" / "production.json"
    decision = json.loads(printed("decide", "--task", str(task), "--grid", str(exported)))
    names = {queue.name for queue in load_snapshot().grid.queues}
    assert {entry["queue"].partition("/")[0] for part in ("chosen", "skipped") for entry in decision[part]} == names


@pytest.fixture
def at_work(db: None) -> None:
    """A user's task with waiting jobs at a queue whose storage has a directory."""
    grid("ALPHA")
    StorageEndpoint.objects.update(path="/srv/secret/place")
    submitted(parameters(prodSourceLabel="user", userName="ada"))
    run_agents()
    assert Job.objects.filter(ended_at=None).exists()


def test_operators_get_the_jobs_and_users_too(at_work: None) -> None:
    document = json.loads(printed("export_grid"))
    assert sum(entry["n"] for entry in document["jobs"]) == Job.objects.filter(ended_at=None).count()
    assert [user["name"] for user in document["users"]] == ["ada"]
    assert document["storages"]["ALPHA_DISK"]["path"] == "/srv/secret/place"


def test_rest_gives_the_grid_alone_and_so_does_the_command_where_asked(at_work: None) -> None:
    answer = person("eve", ("other", "auditor")).get("grid/")
    assert answer.status_code == 200
    document: dict[str, Any] = answer.json()
    assert document["queues"].keys() == {"ALPHA"}
    assert not PEOPLE & document.keys()
    assert "ada" not in answer.text
    assert "/srv/secret" not in answer.text
    assert "total_rw" not in answer.text
    alone = json.loads(printed("export_grid", "--grid-only"))
    assert {**alone, "now": ""} == {**document, "now": ""}


def test_a_file_that_cannot_be_written_is_named(db: None, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"no/grid\.json: No such file or directory"):
        call_command("export_grid", str(tmp_path / "no" / "grid.json"))
