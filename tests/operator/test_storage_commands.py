"""`manage.py storage` and `check_storage`: marking roots, and holding the catalogue against what stands on them."""

from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from broker_site.roof.supervisor.local_site import mark_storages
from brokerage.models import Job, StorageEndpoint
from brokerage.pilot.storage_root import MARKER
from brokerage.queries.job_document import job_document
from tests.builders import grid, parameters, submitted
from tests.flow.steps import end, good, run_agents, take
from tests.flow.steps import mark_storages as mark_all
from tests.flow.test_bad_inputs import with_files_on_disk

pytestmark = pytest.mark.django_db


def printed(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def checked(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code of `check_storage`, and what it says of the one endpoint."""
    out, code = io.StringIO(), 0
    try:
        call_command("check_storage", "--json", *arguments, stdout=out)
    except SystemExit as ended:
        code = int(ended.code or 0)
    (result,) = json.loads(out.getvalue())["storages"]
    return code, result


def put(path: Path, size: int, *, age_s: float = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def test_a_root_is_marked_once_it_is_there_and_never_over_the_mark_of_another(tmp_path: Path) -> None:
    grid("ALPHA", "BETA", path=str(tmp_path))
    with pytest.raises(CommandError, match=r"is not a folder; --create makes it$"):
        printed("storage", "mark", "ALPHA_DISK")
    assert "is marked" in printed("storage", "mark", "ALPHA_DISK", "--create")
    assert (tmp_path / "ALPHA" / MARKER).read_text() == "ALPHA_DISK\n"
    assert printed("storage", "list").splitlines()[0].split()[:2] == ["ALPHA_DISK", "up"]
    StorageEndpoint.objects.filter(name="BETA_DISK").update(path=str(tmp_path / "ALPHA"))
    with pytest.raises(CommandError, match="marked as 'ALPHA_DISK'"):
        printed("storage", "mark", "BETA_DISK")
    (tmp_path / "ALPHA").rename(tmp_path / "away")
    with pytest.raises(CommandError, match=r"is not a folder$"):
        printed("storage", "mark", "ALPHA_DISK", "--create")
    assert printed("storage", "list").splitlines()[0].split()[:2] == ["ALPHA_DISK", "down"]
    with pytest.raises(CommandError, match="no storage endpoint NONE"):
        printed("storage", "mark", "NONE")


def test_a_read_only_root_is_marked_by_a_file_that_is_always_there(tmp_path: Path) -> None:
    grid("ALPHA", path=str(tmp_path))
    put(tmp_path / "ALPHA" / "VERSION", 3)
    with pytest.raises(CommandError, match="is not a file below"):
        printed("storage", "mark", "ALPHA_DISK", "--canary", "../x")
    printed("storage", "mark", "ALPHA_DISK", "--canary", "VERSION")
    assert printed("storage", "list").split()[:2] == ["ALPHA_DISK", "up"]
    assert checked("--remove-orphans", "--older-than", "0") == (0, checked()[1]), "its mark is nobody's orphan"
    put(tmp_path / "ALPHA" / "VERSION", 4)
    assert printed("storage", "list").split()[:2] == ["ALPHA_DISK", "down"]


def test_a_local_system_marks_the_roots_that_it_makes_and_no_others(tmp_path: Path) -> None:
    grid("ALPHA", "BETA", "GAMMA", path=str(tmp_path / "storage"))
    StorageEndpoint.objects.filter(name="GAMMA_DISK").update(path="/elsewhere/GAMMA")
    put(tmp_path / "storage" / "BETA" / "of before", 1)
    assert mark_storages(tmp_path) == ["BETA_DISK", "GAMMA_DISK"]
    assert [path.name for path in (tmp_path / "storage" / "ALPHA").iterdir()] == [MARKER]
    (tmp_path / "storage" / "ALPHA").rename(tmp_path / "away")
    mark_storages(tmp_path)
    assert not (tmp_path / "storage" / "ALPHA").exists(), "one that went away is not made again"
    (tmp_path / "away").rename(tmp_path / "storage" / "ALPHA")
    StorageEndpoint.objects.update(mark="")
    mark_storages(tmp_path)
    assert StorageEndpoint.objects.get(name="ALPHA_DISK").mark == MARKER, "known again by a new database"


def test_a_root_that_a_local_system_makes_is_ours_alone_to_read_from_the_first_run_on(tmp_path: Path) -> None:
    grid("ALPHA", path=str(tmp_path / "storage" / "disks"))
    before = os.umask(0o022)
    try:
        mark_storages(tmp_path)
    finally:
        os.umask(before)
    for made in ("storage", "storage/disks", "storage/disks/ALPHA"):
        assert (tmp_path / made).stat().st_mode & 0o077 == 0, made


def test_what_is_lost_damaged_or_unknown_is_told_and_only_old_orphans_are_removed(tmp_path: Path) -> None:
    grid("ALPHA", path=str(tmp_path))
    with_files_on_disk(tmp_path, 4)
    mark_all(tmp_path)
    root = tmp_path / "ALPHA"
    assert checked() == (
        0,
        {
            "storage": "ALPHA_DISK", "marked": True, "trouble": "", "right": 4, "orphans": [], "orphan_bytes": 0, "young": [],
            "lost": [], "wrong_sizes": [], "removed": 0, "problems": 0,
        },
    )  # fmt: skip
    (root / "in.data.000000").unlink()
    put(root / "in.data.000001", 7)
    old, young = put(root / "t.OUT" / "t.OUT.000009", 5, age_s=2 * 86400), put(root / "t.OUT" / "t.OUT.000010", 5)
    code, result = checked()
    assert (code, result["right"], result["lost"], result["orphans"]) == (1, 2, ["in.data.000000"], ["t.OUT/t.OUT.000009"])
    assert result["wrong_sizes"] == [{"path": "in.data.000001", "found": 7, "registered": 1000}]
    assert result["young"] == ["t.OUT/t.OUT.000010"]
    text = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("check_storage", stdout=text)
    assert "ALPHA_DISK: 2 right, 1 lost, 1 of a wrong size, 1 orphan, 1 unknown but young" in text.getvalue()
    assert "    wrong size: in.data.000001: 7 bytes, registered are 1000" in text.getvalue()
    assert checked("--remove-orphans")[1]["removed"] == 1
    assert (old.exists(), young.exists()) == (False, True)
    assert checked("--remove-orphans", "--older-than", "0")[1]["removed"] == 1
    assert sorted(path.name for path in root.rglob("*")) == [
        MARKER, "in.data.000001", "in.data.000002", "in.data.000003", "t.OUT"
    ]  # fmt: skip


def test_outputs_of_jobs_that_have_not_ended_are_no_orphans(tmp_path: Path) -> None:
    (queue,) = grid("ALPHA", path=str(tmp_path))
    mark_all(tmp_path)
    submitted(parameters(nEvents=10))
    run_agents()
    held = take(queue)
    document = job_document(held.job_id)
    first, log = (Path(output["path"]) for output in document["outputs"])
    put(first, 10, age_s=90_000)
    put(log.with_name(f".{log.name}.{held.job_id}.{held.epoch}.part"), 3, age_s=90_000)
    assert checked("--remove-orphans", "--older-than", "0s")[1] | {"young": []} == checked()[1] | {"young": []}
    assert first.exists()
    put(log, 10)
    end(held, good(held.job_id))
    assert Job.objects.get().storage == "ALPHA_DISK"
    code, result = checked("--older-than", "1h")
    assert (code, result["right"]) == (1, 2)
    assert [Path(path).name for path in result["orphans"]] == [f".{log.name}.{held.job_id}.{held.epoch}.part"]


def test_nothing_is_concluded_of_an_endpoint_that_is_down(tmp_path: Path) -> None:
    grid("ALPHA", path=str(tmp_path))
    with_files_on_disk(tmp_path, 2)
    mark_all(tmp_path)
    (tmp_path / "ALPHA").rename(tmp_path / "away")
    (tmp_path / "ALPHA").mkdir()
    code, result = checked("--remove-orphans", "--older-than", "0s")
    assert (code, result["lost"], result["problems"]) == (1, [], 0)
    assert "storage ALPHA_DISK is down" in result["trouble"]
    with pytest.raises(CommandError, match="no storage endpoint with a path or an address: NONE"):
        call_command("check_storage", "--storage", "NONE")
