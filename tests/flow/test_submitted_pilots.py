"""Jobs submitted to this machine: real pilots, which the agent starts, against the real server; two agents at once; kills."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.db import connection, connections
from pytest_django.live_server_helper import LiveServer

from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from brokerage.agents.submit import CACHE
from brokerage.models import ComputingQueue, Job, JobResult, Pilot, SubmittedJob
from brokerage.queries.invariants import look
from brokerage.queries.submission import cycle_rules, site_facts
from examples.demo.campaign import SOFTWARE, tasks
from tests.builders import grid, parameters, submitted
from tests.flow.steps import mark_storages
from tests.flow.test_pilots import AGENTS
from workqueues.models import Task

pytestmark = pytest.mark.django_db(transaction=True)
SLOTS = 3


@pytest.fixture
def machine(live_server: LiveServer, tmp_path: Path, settings: Any) -> Iterator[ComputingQueue]:
    """A queue whose jobs are submitted to this machine, in three slots."""
    (queue,) = grid("ALPHA", path=str(tmp_path / "storage"))
    Pilot.objects.all().delete()
    mark_storages(tmp_path)
    ComputingQueue.objects.update(submission="local", maxrss=2000)
    config = {"server": live_server.url, "software": str(SOFTWARE), "work": str(tmp_path / "work"), "slots": SLOTS}
    (tmp_path / "local.json").write_text(json.dumps({**config, "enrolments": str(tmp_path / "enrolments")}))
    settings.LOCAL_PILOTS = tmp_path / "local.json"
    CACHE.forget()
    for key, value in {"FEWEST_CPU_SLOTS": 5, "KIND_PENDING_PERCENT": 0, "SITE_PENDING_PERCENT": 0}.items():
        set_override("submission", key, value, who="test", why="a small site")
    yield queue
    for pids in pilots(tmp_path).values():
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


def pilots(folder: Path) -> dict[str, list[int]]:
    """The pilots below the folder by what they were asked to run, each with the processes that it forked."""
    found: dict[str, list[int]] = {}
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "brokerage.pilot" in words and any(word.startswith(str(folder)) for word in words):
            found.setdefault(words[words.index("--job") + 1], []).append(process.pid)
    return found


def rounds(names: tuple[str, ...], until: threading.Event) -> None:
    """Agents again and again, with a connection of their own."""
    try:
        while not until.is_set():
            for name in names:
                run_agent(name, looked=True)
            time.sleep(0.05)
    finally:
        connections["default"].close()


def test_two_agents_submit_each_job_once_within_thresholds_and_a_killed_pilot_loses_nothing(
    machine: ComputingQueue, tmp_path: Path
) -> None:
    set_override("jobbroker", "RETRY_PAUSE", 0.1, who="test", why="a pilot is killed")
    (document, *_) = tasks("s1")
    task = submitted({**document, "nEvents": 50 * 12, "nEventsPerJob": 50})
    end, over, killed, seen = threading.Event(), time.monotonic() + 90, 0, Counter[str]()
    agents = [threading.Thread(target=rounds, args=(("submit",), end)) for _ in range(2)]
    agents.append(threading.Thread(target=rounds, args=(AGENTS, end)))
    for agent in agents:
        agent.start()
    try:
        while time.monotonic() < over:
            task.refresh_from_db()
            if task.status in ("done", "finished", "failed", "broken", "exhausted"):
                break
            for site in site_facts().sites.values():
                load, use = site.load(cycle_rules().rule).site, site.use.get("Processing")
                if use is not None:
                    seen["pending"] = max(seen["pending"], use.pending)
                    assert use.pending + use.running <= load.pending_slots + load.running_slots
            assert len(pilots(tmp_path)) <= SLOTS
            running = Job.objects.filter(status="running").first()
            if not killed and running is not None:
                row = SubmittedJob.objects.filter(job_id=running.id).first()
                if row is not None and row.handle:
                    killed = running.id
                    os.kill(int(row.handle.split(" ")[2]), signal.SIGKILL)
            time.sleep(0.1)
    finally:
        end.set()
        for agent in agents:
            agent.join(30)
    logs = [path.read_text()[-1500:] for path in tmp_path.glob("work/*/pilot.log")]
    assert task.status == "done", (task.error_dialog, list(Job.objects.values_list("id", "status", "sub_status")), logs)
    assert 0 < seen["pending"] <= 5
    assert killed
    lost = Job.objects.get(id=killed)
    assert (lost.status, lost.sub_status) in {("closed", "pilot_closed"), ("finished", "")}
    assert Job.objects.filter(status="finished").count() == 12
    assert Pilot.objects.count() == Job.objects.count(), "one pilot a job"
    assert [f"{found.invariant.name}: {found.examples}" for found in look() if found.violations] == []


def test_a_pilot_that_cannot_start_gives_its_job_back_with_what_it_said(machine: ComputingQueue, tmp_path: Path) -> None:
    config = json.loads((tmp_path / "local.json").read_text())
    (tmp_path / "local.json").write_text(json.dumps({**config, "server": "http://127.0.0.1:9", "slots": 1}))
    (tmp_path / "enrolments").mkdir(mode=0o500)
    submitted(parameters(nEvents=10, nEventsPerJob=10))
    for name in (*AGENTS[:5], *AGENTS[:5], "submit"):
        run_agent(name, looked=True)
    row = SubmittedJob.objects.get()
    if os.geteuid():  # root writes everywhere
        assert row.handle == ""
        return
    os.kill(int(row.handle.split(" ")[2]), signal.SIGKILL)
    time.sleep(0.1)
    run_agent("submit", looked=True)
    job, result = Job.objects.get(id=row.job_id), JobResult.objects.get(job_id=row.job_id)
    assert (job.status, job.sub_status) == ("closed", "pilot_closed")
    assert result.error_message.startswith("its pilot ended without a word")


def test_a_file_that_breaks_rules_is_named_and_nothing_is_submitted(machine: ComputingQueue, tmp_path: Path) -> None:
    submitted(parameters(nEvents=10, nEventsPerJob=10))
    for name in (*AGENTS[:5], *AGENTS[:5]):
        run_agent(name, looked=True)
    config = json.loads((tmp_path / "local.json").read_text())
    (tmp_path / "local.json").write_text(json.dumps({**config, "slots": 0, "work": "here"}))
    run_agent("submit", looked=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT left_out FROM agency_agent WHERE name = 'submit'")
        (left,) = cursor.fetchone()
    assert "slots: " in left
    assert "work: " in left
    assert Job.objects.filter(status="activated").count() == 1
    assert Task.objects.count() == 1
