"""The demo's payloads, task documents and checks, without a broker.

What they make is right, and the checks find what is wrong.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples.demo.campaign import FILES_OF_EVENTS, SOFTWARE, prefix, tasks
from examples.demo.check import EVENTS_PER_FILE, FIRST_SEED, Registered, check_histogram, check_storage, expected_histogram
from tests.pilot.peer import adler
from workqueues.rules.refine import read_task, validate

ROOT = Path(__file__).resolve().parents[2]


def run(folder: Path, program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SOFTWARE / program), *arguments]
    return subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of a small campaign: 3 files of 200 events, processed and merged."""
    folder = tmp_path_factory.mktemp("campaign")
    for n in range(3):
        seed = str(FIRST_SEED + n)
        made = run(folder, "make_events.py", "--seed", seed, "--serial", str(n + 1), "--events", "200", f"--out=e{n}")
        assert made.returncode == 0, made.stderr
    assert json.loads((folder / "jobReport.json").read_text())["files"]["output"][0]["subFiles"] == [
        {"name": "e2", "nentries": 200}
    ]
    assert run(folder, "process_events.py", "--in", "e0,e1", "--out=m0").returncode == 0
    assert run(folder, "process_events.py", "--in", "e2", "--out=m1").returncode == 0
    assert run(folder, "merge_histogram.py", "--in", "m1,m0", "--out=h").returncode == 0
    return folder


def test_the_merged_histogram_is_what_the_seeds_imply(merged: Path) -> None:
    histogram = json.loads((merged / "h").read_bytes())
    assert check_histogram(histogram, 3, 200) == []
    assert sum(histogram["counts"]) == histogram["events"] == 600
    assert expected_histogram(range(FIRST_SEED, FIRST_SEED + 3), 200)["counts"] == histogram["counts"]


def test_the_check_finds_a_file_that_is_missing_doubled_or_foreign(merged: Path) -> None:
    for order, expected in (("m0", "seed 1003 is missing"), ("m0,m1,m1", "serial 3 is there 2 times")):
        run(merged, "merge_histogram.py", "--in", order, "--out=bad")
        problems = check_histogram(json.loads((merged / "bad").read_bytes()), 3, 200)
        assert expected in problems
        assert any(text.startswith("counts is") for text in problems)
    assert "seed 1003 was never given" in check_histogram(json.loads((merged / "h").read_bytes()), 2, 200)


def test_a_first_attempt_fails_on_purpose_at_the_named_queue_only(merged: Path) -> None:
    arguments = ["process_events.py", "--in", "e0", "--out=again", "--fail-first-at", "BETA", "--attempt"]
    failed = run(merged, *arguments, "1", GRIDBROKER_QUEUE="BETA")
    assert failed.returncode == 1
    assert "on purpose" in failed.stderr
    assert not (merged / "again").exists()
    assert run(merged, *arguments, "2", GRIDBROKER_QUEUE="BETA").returncode == 0
    assert run(merged, *arguments, "1", GRIDBROKER_QUEUE="ALPHA").returncode == 0


def test_plain_files_beside_a_registered_log_belong_to_it_and_others_to_nobody(tmp_path: Path) -> None:
    names = ("demo.r1.log.1.tgz", "demo.r1.f1")
    for name in names:
        for file in (name, f"{name}.stdout"):
            (tmp_path / file).write_bytes(b"content")
    (tmp_path / "demo.r1.log.2.tgz.stderr").write_bytes(b"content")
    register = [Registered(name, 7, adler(b"content"), "A") for name in names]
    assert check_storage(register, {"A": tmp_path}, "demo.r1.") == [
        "demo.r1.f1.stdout stands on A and is not registered there",
        "demo.r1.log.2.tgz.stderr stands on A and is not registered there",
    ]


def test_storage_is_held_against_the_register(tmp_path: Path) -> None:
    folders = {"A": tmp_path / "a", "B": tmp_path / "b"}
    register = []
    for number, storage in enumerate("AABB"):
        folders[storage].mkdir(exist_ok=True)
        content = f"content {number}".encode()
        (folders[storage] / f"demo.r1.f{number}").write_bytes(content)
        register.append(Registered(f"demo.r1.f{number}", len(content), adler(content), storage))
    (folders["B"] / "set").mkdir()
    (folders["B"] / "set" / "demo.r1.f4").write_text("below")
    register.append(Registered("demo.r1.f4", 5, adler(b"below"), "B", "set/demo.r1.f4"))
    assert check_storage(register, folders, "demo.r1.") == []
    (folders["A"] / "demo.r1.f0").unlink()
    (folders["A"] / "demo.r1.f1").write_text("content X")
    (folders["B"] / "demo.r1.f2").write_text("longer content")
    (folders["A"] / "demo.r1.f3").write_text("content 3")
    (folders["A"] / ".demo.r1.f9.7.1.part").write_text("half")
    (folders["A"] / "demo.r2.f1").write_text("of another run")
    register.append(register[3])
    assert sorted(check_storage(register, folders, "demo.r1.")) == [
        ".demo.r1.f9.7.1.part stands on A and is not registered there",
        "demo.r1.f0 is missing on A",
        f"demo.r1.f1 on A has adler32 {adler(b'content X')}, registered is {register[1].checksum}",
        "demo.r1.f2 on B has 14 bytes, registered are 9",
        "demo.r1.f3 is registered 2 times",
        "demo.r1.f3 stands on A and is not registered there",
    ]


def test_the_task_documents_are_accepted_and_chained_and_belong_to_one_run() -> None:
    documents = tasks("r7")
    assert [validate(document) for document in documents] == [[], [], []]
    names = [str(document["taskName"]) for document in documents]
    assert [document.get("parentTaskName") for document in documents] == [None, *names[:-1]]
    outputs = [
        item["dataset"] for document in documents for item in document["jobParameters"] if item.get("param_type") == "output"
    ]
    assert [read_task(document).input_names for document in documents[1:]] == [(outputs[0],), (outputs[1],)]
    assert all(name.startswith(prefix("r7")) for name in [*names, *outputs])
    assert "{run}" not in json.dumps(documents)
    first = documents[0]
    assert first["nEventsPerJob"] == EVENTS_PER_FILE
    assert first["nEvents"] == EVENTS_PER_FILE * FILES_OF_EVENTS
    assert first["jobParameters"][0]["offset"] == FIRST_SEED - 1


def test_the_grid_has_four_queues_of_different_size_over_three_sites() -> None:
    grid = json.loads((ROOT / "examples" / "grids" / "demo.json").read_bytes())
    assert grid["format"] == "gridbroker-grid/1"
    assert len(grid["sites"]) == 3
    assert sorted(queue["local_pilots"] for queue in grid["queues"].values()) == [1, 1, 2, 3]
    for queue in grid["queues"].values():
        assert queue["atlas_site"] in grid["sites"]
        assert set(queue["astorages"]["read_lan"] + queue["astorages"]["write_lan"]) <= set(grid["storages"])
    assert not any(storage["path"].startswith("/") for storage in grid["storages"].values())
    process = tasks("r1")[1]
    assert any("--fail-first-at BETA" in item["value"] for item in process["jobParameters"])
    assert "BETA" in grid["queues"]
