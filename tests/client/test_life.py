"""A task from the command line to its files, by a real server and real pilots: submit, watch, list, why, get, logs."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from brokerage.models import Job
from examples.demo.campaign import SOFTWARE
from tests.builders import grid, parameters, submitted
from tests.client.broker import Broker, ended, fields
from tests.flow.steps import BAD, mark_storages, run_agents, run_jobs
from tests.flow.test_pilots import pilots
from workqueues.models import File, Replica, Task

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.servers]

PROGRAM = ("make_events.py", "--seed", "%RNDM", "--serial", "%SEQ", "--events", "%MAXEVENTS", "--out=events.jsonl")


def documented(folder: Path, name: str = "t1", **more: object) -> str:
    """A file of task parameters; its name."""
    (folder / f"{name}.json").write_text(json.dumps(parameters(name, **more)))
    return f"{name}.json"


def test_a_program_is_submitted_watched_to_its_end_and_its_outputs_are_fetched(ada: Broker, url: str, tmp_path: Path) -> None:
    (queue,) = grid("ALPHA", path=str(tmp_path))
    mark_storages(tmp_path)
    running = ada.begin(
        "submit", "--name", "ada.first", "--vo", "demo", "--out", "events.jsonl", "--events", "30", "--events-per-job", "10",
        "--memory", "500", "--set", "skipScout=true", "--wait", "--every", "0.2", "--", *PROGRAM,
    )  # fmt: skip
    with pilots(url, [queue], tmp_path, SOFTWARE):
        said = ended(running, run_agents, 120)
    assert said.code == 0, said.err
    task = Task.objects.get()
    ((number, status, percent, name, *_),) = said.rows
    assert (number, status, percent, name) == (str(task.id), "done", "100", "ada.first")
    assert f"task {task.id} done: 3 done, 0 failed, 0 in jobs, 0 left of 3 files" in said.err
    got = ada("get", str(task.id), "--dir", "here")
    assert got.code == 0, got.err
    names = [f"ada.first.{n:06d}.events.jsonl" for n in (1, 2, 3)]
    assert sorted(got.out.split()) == [f"here/{each}" for each in names]
    made = [(ada.folder / "here" / each).read_text().splitlines() for each in names]
    assert [len(lines) for lines in made] == [11, 11, 11], "a line of its own, and ten events"
    assert ada("get", str(task.id), "-d", "here").out.count("there already") == 3
    (ada.folder / "here" / names[0]).write_text("mine")
    other = ada("get", str(task.id), "-d", "here", "--name", "*000001*")
    assert (other.code, "another file" in other.err) == (2, True)
    assert (ada.folder / "here" / names[0]).read_text() == "mine"
    assert ada("get", str(task.id), "-d", "here", "--name", "*000001*", "--force").code == 0
    assert (ada.folder / "here" / names[0]).read_text().splitlines() == made[0]
    job = Job.objects.order_by("id")[0]
    followed = ada("logs", "-f", str(job.id))
    assert (followed.code, "==> stdout <==" in followed.out, f"job {job.id} finished at ALPHA" in followed.err) == (0, True, True)
    assert ada("logs", str(job.id)).out == followed.out
    assert ada("job", "log", str(job.id), "--end").out == followed.out, "its files are shorter than a piece"
    log = Replica.objects.get(file__lfn=File.objects.get(out_job_id=job.id, type="log").lfn).path
    (tmp_path / "ALPHA" / f"{log}.stdout").unlink()
    unpacked = ada("logs", str(job.id))
    assert (unpacked.code, "==> stdout <==" in unpacked.out) == (0, True), "without a file of its own it is in the archive"
    assert ada("get", str(job.id), "--job", "--log").out.endswith(".tgz\n")


def test_a_file_is_submitted_once_however_often_it_is_sent_with_its_key(ada: Broker) -> None:
    grid()
    first = ada("submit", documented(ada.folder), "--key", "k1", "--json=id,status")
    again = ada("submit", "--key", "k1", documented(ada.folder), "-q")
    assert first.documents == [{"id": int(again.out), "status": "registered"}]
    other = ada("submit", documented(ada.folder, nEvents=50), "--key", "k1")
    assert (other.code, Task.objects.count()) == (5, 1)
    piped = ada("submit", "-", "--name", "t2", "--set", 'log={"type": 1}', stdin=json.dumps(parameters("t1")))
    assert piped.code == 5
    assert {field.partition(".")[0] for field, _ in fields(piped)} == {"log"}
    assert ada("submit", "-", "--name", "t2", "-q", stdin=json.dumps(parameters("t2x"))).code == 0
    assert list(Task.objects.order_by("id").values_list("task_name", flat=True)) == ["t1", "t2"]


def test_what_the_server_refuses_is_told_by_field_and_nothing_is_submitted(ada: Broker) -> None:
    said = ada("submit", documented(ada.folder, nEvents="many", nEvent=3, ramCount=-1))
    assert said.code == 5
    assert {("nEvents", "type"), ("nEvent", "unknown"), ("ramCount", "range")} <= fields(said)
    assert "trace id" in said.err
    assert said.out == ""
    assert not Task.objects.exists()


def test_a_dry_run_tells_what_a_submission_would_do_and_submits_nothing(ada: Broker) -> None:
    said = ada("submit", documented(ada.folder), "--dry-run")
    assert (said.code, said.out.splitlines()[0]) == (0, "t1 of ada (demo): nothing is wrong with it; nothing was submitted"), said
    piped = ada("run", "--name", "t2", "--vo", "demo", "--jobs", "2", "--dry-run", "--json=task_name,again", "--", *PROGRAM)
    assert piped.documents == [{"task_name": "t2", "again": None}]
    wrong = ada("submit", documented(ada.folder, nEvent=3), "--dry-run")
    assert (wrong.code, fields(wrong)) == (5, {("nEvent", "unknown")})
    for words in ((), ("t1.json",), ("--name", "t3", "--vo", "demo")):
        assert ada("run", *words).code == 2
    assert not Task.objects.exists()


def test_why_a_task_waits_is_told_in_the_words_of_the_server(ada: Broker) -> None:
    grid("ALPHA", "BETA")
    task = submitted(parameters("large", ramCount=64000))
    run_agents()
    headline = ada("api", "GET", f"/tasks/{task.id}/waiting/").documents[0]["headline"]
    assert "a job needs 57600 MB" in headline
    said = ada("why", str(task.id))
    assert said.code == 0, said.err
    assert f"Task {task.id}: {headline}" in said.out
    assert "not BETA: " in said.out
    assert "-lowmemory" in said.out
    assert "  next look at 20" in said.out
    Task.objects.filter(id=task.id).update(next_look_at=datetime(2026, 1, 1, 8, tzinfo=UTC))
    assert "  next look due now, since 2026-01-01 08:00:00 UTC" in ada("why", str(task.id)).out
    one = ada("task", "why", str(task.id), "--queue", "BETA").out
    assert "skip -lowmemory" in one
    assert "would do: 57600" in one
    assert ada("why", str(task.id), "--queue", "NOWHERE").code in (3, 5)
    what = ada("why", str(task.id), "--what-if", "ramCount=500")
    assert "ramCount = 500" in what.out
    assert "chosen ALPHA" in what.out
    wrong = ada("why", str(task.id), "--what-if", "ramCuont=500")
    assert wrong.code == 5
    assert "ramCuont" in wrong.err
    document = ada("why", str(task.id), "--json=id,headline,decision").documents[0]
    assert (document["id"], document["headline"]) == (task.id, headline)
    assert document["decision"]["explanation"]["verdict"]


def test_why_a_queue_is_empty_and_a_job_waits(ada: Broker) -> None:
    grid("ALPHA")
    submitted(parameters("large", ramCount=64000))
    submitted(parameters("small"))
    run_agents()
    assert "-lowmemory" in ada("queue", "why", "ALPHA").out
    assert ada("queue", "why", "ALPHA", "--asks").out.startswith("Queue ALPHA: what the last asks")
    job = Job.objects.order_by("id").last()
    assert job is not None
    assert ada("job", "why", str(job.id)).out.startswith(f"Job {job.id}: 3 of 4 alike go before it")
    assert ada("job", "kill", str(job.id), "-y").code == 0
    told = ada("job", "why", str(job.id))  # it is there, and does not wait
    assert (told.code, told.out.startswith(f"Job {job.id} waits for no pilot: it is cancelled since ")) == (0, True), told
    assert ada("job", "why", "99999").code == 3


def test_a_watched_task_that_fails_ends_with_1_and_its_errors_are_told(ada: Broker) -> None:
    (queue,) = grid()
    task = submitted(parameters("t1", nEvents=10, maxAttempt=1))
    run_agents()
    watching = ada.begin("watch", str(task.id), "--every", "0.2", "--json=id,status")

    def go_on() -> None:
        run_jobs(queue, BAD)
        run_agents()

    said = ended(watching, go_on)
    assert (said.code, said.documents) == (1, [{"id": task.id, "status": "failed"}])
    assert "PAYLOAD_EXIT of 1 jobs" in ada("why", str(task.id)).out


def test_the_log_of_a_job_that_runs_is_waited_for(ada: Broker) -> None:
    """Here no log is stored at the end, which is 3; that one is printed is in the test of a whole life."""
    (queue,) = grid("ALPHA")
    submitted(parameters("t1", nEvents=10, maxAttempt=1))
    run_agents()
    job = Job.objects.get()
    early = ada("job", "log", "-f", str(job.id), "--timeout", "0.3", "--every", "0.2")
    assert (early.code, f"job {job.id} is activated" in early.err, early.out) == (7, True, ""), early
    following = ada.begin("logs", "--follow", str(job.id), "--every", "0.2")
    said = ended(following, lambda: run_jobs(queue, BAD))
    assert (said.code, f"job {job.id} failed at ALPHA" in said.err, "No log on storage" in said.err) == (3, True, True), said
    stopped = ada.on_terminal("job", "log", "-f", "999999")
    assert stopped.code == 3


def test_commands_steer_tasks_and_ask_before_they_hit_several(ada: Broker) -> None:
    grid()
    one, two, _ = (submitted(parameters(name)).id for name in ("t1", "t2", "t3"))
    run_agents()

    def states() -> list[str]:
        run_agents()
        return list(Task.objects.order_by("id").values_list("status", flat=True))

    assert ada("pause", str(one)).code == 0
    assert states()[0] == "paused"
    said = ada("resume", str(one), str(two))
    assert said.code == 5, "the second one is not paused"
    assert f"{two}: " in said.err
    assert f"task {one} running" in said.out
    refused = ada("kill", str(one), "-m", "wrong release", str(two))
    assert (refused.code, "kill 2 tasks" in refused.err, "--yes" in refused.err) == (2, True, True)
    no = ada.on_terminal("kill", str(one), str(two), typed="n\n", at="[y/N]")
    assert (no.code, f"kill 2 tasks ({one}, {two})? [y/N]" in no.out) == (2, True)
    assert states() == ["running"] * 3
    assert ada.on_terminal("kill", str(one), str(two), "-m", "wrong release", typed="y\n", at="[y/N]").code == 0
    assert states() == ["aborted", "aborted", "running"]
    history = ada("api", "GET", f"/tasks/{one}/history/?page_size=1000").documents[0]["results"]
    assert any("wrong release" in move["why"] for move in history)
    ids = ada("ls", "-s", "running", "-q").out
    assert ada("finish", "-", "--hard", "--yes", stdin=ids).code == 0
    assert states()[2] in ("finished", "failed", "done")


def test_an_interrupted_watch_stops_nothing_and_says_how_to_go_on(ada: Broker) -> None:
    grid()
    task = submitted(parameters("t1"))
    run_agents()
    said = ada.on_terminal("watch", str(task.id), interrupt="in jobs")
    assert said.code == 130
    assert f"Go on with: broker watch {task.id}" in said.out
    assert "0 %  0 done, 0 failed, 4 in jobs, 0 left of 4 files" in said.out
    task.refresh_from_db()
    assert task.status == "running"
    waiting = ada("watch", str(task.id), "--timeout", "0.5", "--every", "0.2")
    assert (waiting.code, "is running" in waiting.err) == (7, True)


def test_a_reader_that_has_enough_is_no_error(ada: Broker) -> None:
    for n in range(60):
        submitted(parameters(f"t{n}"))
    listing = ada.begin("ls", "-n", "0", "--json")
    assert listing.stdout is not None
    assert listing.stderr is not None
    listing.stdout.readline()
    listing.stdout.close()
    assert listing.wait(30) == 0
    assert listing.stderr.read() == ""
    listing.stderr.close()
    assert isinstance(listing, subprocess.Popen)
