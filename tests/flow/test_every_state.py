"""Every state of every machine is entered and, unless it is final, left, by what users, operators, pilots and time do.

States that nothing enters yet are named here with the row of the mission that will, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.kernel.machine import Machine
from brokerage.agents import dataset_jobs
from brokerage.ledger.expiry import kill_jobs
from brokerage.ledger.heartbeats import SignOfLife, beat
from brokerage.ledger.lease import lease
from brokerage.models import ComputingQueue, Job, Transfer
from brokerage.mover.process import Mover
from brokerage.queries.waiting import WAITING
from brokerage.rules.dispatch.settlement import JobVersion, Report
from brokerage.states import JOB, TRANSFER
from brokerage.transfers.commands import cancel_transfers
from tests.builders import parameters, pilot, reading, submitted
from tests.flow.steps import BAD, ROUND, end, let_confirm, run_agents
from tests.stateful.scene import Scene, killed_at
from workqueues.ledger.commands import command
from workqueues.models import CatalogueDataset, CatalogueFile, Task
from workqueues.states import EVENT, INPUT_DATASET, INPUT_FILE, INPUT_TYPES, OUTPUT_DATASET, OUTPUT_FILE, TASK

pytestmark = pytest.mark.django_db

LATER: Mapping[str, str] = {
    "input_dataset pending": "J1, an input that cannot be read makes its task wait",
    "input_dataset broken": "J1, a task with an input that breaks is broken itself",
    "input_file missing": "J13, files without an event that may be had",
    "output_file defined": "J13, outputs of event service jobs",
    "event_range running": "J13",
    "event_range merged": "J13",
    "event_range discarded": "J13",
    "event_range corrupted": "J13",
    "job pending": "X4, jobs that are bound late",
    "job defined": "X4, jobs that are bound late",
    "job waiting": "J14, co-jumbo jobs",
}
"""State -> the row that will enter it."""
MACHINES: Mapping[str, tuple[Machine, str, str]] = {
    "task": (TASK, "workqueues_task", "TRUE"),
    "input_dataset": (INPUT_DATASET, "workqueues_dataset", f"NEW.type IN ({INPUT_TYPES.sql})"),
    "output_dataset": (OUTPUT_DATASET, "workqueues_dataset", f"NEW.type NOT IN ({INPUT_TYPES.sql})"),
    "input_file": (INPUT_FILE, "workqueues_file", f"NEW.type IN ({INPUT_TYPES.sql})"),
    "output_file": (OUTPUT_FILE, "workqueues_file", f"NEW.type NOT IN ({INPUT_TYPES.sql})"),
    "event_range": (EVENT, "workqueues_eventrange", "TRUE"),
    "job": (JOB, "brokerage_job", "TRUE"),
    "transfer": (TRANSFER, "brokerage_transfer", "TRUE"),
}
_LOG = """
CREATE TEMP TABLE seen (kind text, old text, new text, UNIQUE (kind, old, new)) ON COMMIT DROP;
CREATE FUNCTION pg_temp.note_move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO seen VALUES (TG_ARGV[0], CASE TG_OP WHEN 'INSERT' THEN '-' ELSE OLD.status END, NEW.status)
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
"""


def watch_all_moves() -> None:
    """From now on to the end of the test every move of every row is noted, also several in one transaction."""
    with connection.cursor() as cursor:
        cursor.execute(_LOG)
        for name, (_, table, which) in MACHINES.items():
            cursor.execute(
                f"CREATE TRIGGER seen_{name} AFTER INSERT OR UPDATE ON {table} FOR EACH ROW WHEN ({which})"
                f" EXECUTE FUNCTION pg_temp.note_move('{name}')"
            )


def moves() -> set[tuple[str, str, str]]:
    """Machine, old and new state of what was noted; '-' of a new row."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT kind, old, new FROM seen WHERE old <> new")
        return set(cursor.fetchall())


@dataclass
class World:
    """A grid of two sites with real files, on which the scenarios play."""

    scene: Scene
    n: int = 0

    def submit(self, make: Callable[..., dict[str, Any]], *arguments: Any, **more: Any) -> Task:
        """A task with a name of its own."""
        self.n += 1
        return submitted(make(f"t{self.n}", *arguments, **more))

    def agents(self, rounds: int = 2) -> None:
        """Each agent."""
        run_agents(rounds, ROUND)

    def pilots(self, report: Report | None = None, most: int = 100) -> None:
        """Pilots do what waits, with real files, or end it as reported."""
        for name in self.scene.names:
            for _ in range(most):
                if not self.scene.take(name):
                    break
                leased = self.scene.leases[-1]
                if report is None:
                    self.scene.settle(leased, well=True)
                else:
                    self.scene.leases.remove(leased)
                    end(leased, report)

    def events_at(self, name: str) -> str:
        """A dataset there whose files have ten events each."""
        dataset = self.scene.store([1000] * 3, [name])
        CatalogueFile.objects.filter(dataset__name=dataset).update(n_events=10)
        return dataset

    def order(self, task: Task, name: str) -> None:
        command(task.id, name, "user:ada", "for a test")

    def move(self) -> None:
        """Files are brought where they are wanted."""
        run_agent("transfer", looked=True)
        self.scene.copy(Mover())
        self.agents(1)

    def pass_time(self) -> None:
        self.scene.pass_time()

    def all_done(self) -> None:
        """Until all has ended, and once more for what follows an end."""
        ended = False
        for _ in range(8):
            self.agents(1)
            self.move()
            self.pilots()
            self.pass_time()
            if ended:
                break
            ended = not any(rows.exists() for rows in self.open())

    def open(self) -> tuple[QuerySet[Any], ...]:
        """What has not ended."""
        return (
            Task.objects.exclude(status__in=TASK.final),
            Job.objects.filter(ended_at=None),
            Transfer.objects.filter(ended_at=None),
        )


def a_campaign(world: World) -> None:
    """Inputs travel, outputs are collected, some are merged, scouts go first, and a job that fills in parameters."""
    ComputingQueue.objects.filter(name="ALPHA").update(status="offline")
    world.submit(reading, world.events_at("BETA"), prodSourceLabel="managed", nFilesPerJob=None, nEventsPerJob=5)
    for _ in range(5):  # its nucleus is ALPHA, which has no queue for it now
        world.agents()
        world.pass_time()
        world.pilots()
    ComputingQueue.objects.update(status="online")
    world.submit(reading, world.scene.store([1000] * 4, ["BETA"]), prodSourceLabel="managed")
    world.submit(parameters, mergeOutput=True)
    world.submit(parameters, preproSpec={"transPath": "choose.py"})
    world.submit(parameters, nEvents=60, nScouts=2, skipScout=None)
    world.agents()
    with killed_at(dataset_jobs, "make_jobs", after=False):  # a generator dies with files in its hands
        world.submit(parameters)
        run_agents(1, ("refine", "feed", "assign", "generate"))
    world.all_done()


def commands(world: World) -> None:
    """Paused, resumed, killed, finished; retried and run again."""
    task, killed, finished = (world.submit(parameters, maxAttempt=1) for _ in range(3))
    world.agents()
    world.order(task, "pause")
    world.agents(1)
    world.order(task, "resume")
    world.agents(1)
    world.order(killed, "kill")
    world.order(finished, "finish")
    world.agents()
    world.pilots(BAD)
    world.agents(3)
    world.order(task, "retry")
    world.agents()
    world.pilots()
    world.all_done()
    world.order(task, "incexec")
    world.agents()
    world.all_done()


def bad_ends(world: World) -> None:
    """Jobs that are lost, inputs that are lost, a task that cannot be, and events that are given up."""
    world.submit(parameters, maxAttempt=1)
    world.agents()
    waiting = [w.id for w in WAITING.of(ComputingQueue.objects.get(name="ALPHA").id, fresh=True).rows]
    leased = lease(waiting, pilot(ComputingQueue.objects.get(name="ALPHA"), "s"), uuid4(), 60)
    if leased:
        beat([SignOfLife(leased.job_id, leased.epoch, "starting")])
        world.scene.leases.append(leased)
        world.scene.vanish(leased)
    for name in world.scene.names:
        while world.scene.take(name):
            world.scene.vanish(world.scene.leases[-1])
    world.agents(3)
    CatalogueDataset.objects.create(vo="demo", name="empty", state="closed")
    world.submit(reading, "empty")
    world.submit(reading, world.events_at("ALPHA"), nFilesPerJob=None, nEventsPerJob=5, maxAttempt=1)
    world.agents()
    world.pilots(BAD, most=3)
    task = world.submit(reading, world.events_at("ALPHA"), nFilesPerJob=None, nEventsPerJob=5, maxAttempt=3)
    world.agents()
    killed, *_ = Job.objects.filter(task_id=task.id, ended_at=None).order_by("id")
    kill_jobs([JobVersion(killed.id, killed.epoch, killed.status, task.id)], "user:ada", "not needed")
    world.pilots(BAD, most=1)
    world.pilots()
    world.all_done()
    for content in (None, b"something else"):
        name = world.scene.store([500], ["ALPHA"])
        world.submit(reading, name)
        world.agents()
        for path in [path for path in world.scene.stored if name in str(path)]:
            path.unlink()
            if content:
                path.write_bytes(content)
            world.scene.harmed.add(path)
        told, unread = Report("failed", error_code="INPUT_MISSING", error_message="not as it was"), [f"{name}.000000"]
        world.pilots(replace(told, corrupt_inputs=unread) if content else replace(told, missing_inputs=unread))
        for _ in range(4):
            let_confirm()
            world.agents(1)
    world.all_done()


def rests(world: World) -> None:
    """A failing task is throttled, another is exhausted and given up, a third waits for its input."""
    set_override("watchdog", "MAX_JOB_FAILURE_RATE_TO_PAUSE_managed", 0.5, who="ada", why="test")
    set_override("watchdog", "MIN_JOBS_TO_PAUSE_managed", 4, who="ada", why="test")
    set_override("watchdog", "MIN_REMAINING_JOBS_TO_PAUSE_managed", 4, who="ada", why="test")
    ComputingQueue.objects.filter(name="BETA").update(status="offline")
    twenty = world.scene.store([1000] * 20, ["ALPHA"])
    failing = world.submit(reading, twenty, prodSourceLabel="managed", nFilesPerJob=1, maxAttempt=9)
    for _ in range(20):
        world.agents(1)
        failing.refresh_from_db()
        if failing.status == "throttled":
            break
        world.pilots(BAD, most=2)
        world.pass_time()
        Job.objects.filter(task_id=failing.id, status="failed").update(ended_at=Now())
    ComputingQueue.objects.update(status="online")
    world.order(failing, "resume")
    world.agents(1)
    world.order(failing, "kill")
    world.submit(parameters, maxAttempt=1)
    world.agents()
    world.pilots(BAD, most=1)
    world.agents()
    world.all_done()
    waiting = world.submit(reading, "nowhere.yet", waitInput=True)
    world.agents(1)
    Task.objects.filter(id=waiting.id).update(frozen_time=F("frozen_time") - timedelta(days=40))
    world.pass_time()
    world.agents(1)
    Task.objects.filter(id=waiting.id).update(status_since=F("status_since") - timedelta(days=11))
    world.agents()
    world.all_done()


def transfers(world: World) -> None:
    """One that is cancelled, and one that fails."""
    set_override("transfers", "MAX_ATTEMPTS", 1, who="ada", why="test")
    for _ in range(2):
        world.submit(reading, world.scene.store([1000], ["BETA"]), prodSourceLabel="managed", includedSite=["ALPHA"])
    ComputingQueue.objects.filter(name="BETA").update(status="offline")
    world.agents()
    ids = list(Transfer.objects.filter(ended_at=None).order_by("id").values_list("id", flat=True))
    if ids:
        cancel_transfers(ids[:1], "user:op", "not needed")
    for path in world.scene.stored:
        if path.is_file() and "BETA" in path.parts:
            path.unlink()
    for job in Job.objects.filter(ended_at=None, status="activated")[:1]:
        kill_jobs([JobVersion(job.id, job.epoch, job.status, job.task_id)], "user:ada", "not needed")
    ComputingQueue.objects.update(status="online")
    world.move()
    world.all_done()


def ends_for_now() -> set[str]:
    """States that only those follow which nothing enters yet."""
    found = set()
    for name, (machine, _, _) in MACHINES.items():
        for state in machine.states:
            after = {f"{name} {t.target}" for t in machine.transitions if t.source == state}
            if after and after <= LATER.keys():
                found.add(f"{name} {state}")
    return found


def test_every_state_is_entered_and_left_but_those_that_wait_for_later_rows(tmp_path: Path) -> None:
    watch_all_moves()
    world = World(Scene.made(tmp_path, ["ALPHA", "BETA"], "ALPHA"))
    for scenario in (a_campaign, commands, bad_ends, rests, transfers):
        scenario(world)
    states = {f"{name} {state}" for name, (machine, _, _) in MACHINES.items() for state in machine.states}
    final = {f"{name} {state}" for name, (machine, _, _) in MACHINES.items() for state in machine.final}
    entered, left = ({f"{name} {move[i]}" for name, *move in moves()} for i in (1, 0))
    never = {
        "never entered": sorted(states - entered - LATER.keys()),
        "never left": sorted((entered & states) - final - left - ends_for_now()),
        "named as later, but entered": sorted(entered & LATER.keys()),
    }
    assert not any(never.values()), str(never)


def test_the_manual_names_the_states_that_are_not_in_use() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "states.md").read_text(encoding="utf-8")
    table = text.partition("## Which states are not in use yet")[2].partition("\n## ")[0]
    told = {
        f"{machine} {state}"
        for machine, names in re.findall(r"^\| (\w+) \| ([\w, ]+) \|", table, re.MULTILINE)
        for state in names.split(", ")
    } - {"machine states"}
    assert told == set(LATER)
