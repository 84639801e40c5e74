"""Whatever happens in whatever order (sources fail, roots go, processes die between any two steps): files that move keep their
content, nobody waits for ever, and what nobody can bring again stays.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.db.models import F
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from brokerage.agents import evict, transfer, transfer_attempts, transfer_ends
from brokerage.ledger.expiry import kill_jobs
from brokerage.ledger.task_changes import change_task
from brokerage.models import ComputingQueue, Job, Transfer, TransferWish
from brokerage.rules.dispatch.settlement import JobVersion
from brokerage.rules.facts.job_kind import JobKind
from brokerage.transfers import local
from brokerage.transfers.commands import cancel_transfers
from tests.builders import reading, submitted
from tests.flow.steps import ROUND, run_agents
from tests.moving import asked, wanted
from tests.stateful import holds
from tests.stateful.scene import AN_HOUR, NAMES, Scene, killed_at
from workqueues.ledger.commands import command
from workqueues.models import CatalogueFile, Replica, Task
from workqueues.rules.task.changes import CHANGES
from workqueues.rules.task.commands import COMMANDS
from workqueues.states import TASK

THOROUGH = settings.get_current_profile_name() == "thorough"
EXAMPLES, STEPS = (400, 60) if THOROUGH else (8, 20)
"""A usual run is short, `make soak` has the long form."""
HEALING_ROUNDS = 40
OPERATOR = Principal("user", "op", roles={"demo": frozenset({"operator"})})

pytestmark = [pytest.mark.django_db, *([pytest.mark.long] if THOROUGH else [])]

AGENT_STEPS: tuple[tuple[str, object, str], ...] = (
    ("transfer", transfer_attempts, "move_transfers"),
    ("transfer", local, "order_copies"),
    ("transfer", transfer_attempts.Attempts, "note_submitted"),
    ("transfer", transfer_ends, "finish"),
    ("transfer", transfer_ends, "try_again"),
    ("transfer", transfer_ends, "end_unmet"),
    ("transfer", local, "forget_copies"),
    ("transfer", transfer, "cancel_unwished"),
    ("evict", evict, "claim_removals"),
    ("evict", evict, "_removed"),
    ("evict", evict, "note_removed"),
)
"""Agent, and a function that it calls and at which it dies."""
MOVER_STEPS = ("open_folder", "open_part", "write_all", "fsync", "stands", "publish", "keep_names")
numbers = st.integers(0, 99)
places = st.sampled_from(NAMES)
counted: dict[str, int] = {"steps": 0, "transfers": 0, "merges": 0}


class DataOnTheMove(RuleBasedStateMachine):
    """A grid, and everybody who works on it."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._undone = transaction.atomic()
        self._undone.__enter__()
        self.scene: Scene | None = None

    @property
    def now(self) -> Scene:
        assert self.scene is not None
        return self.scene

    @initialize(names=st.lists(places, min_size=2, max_size=4, unique=True), number=numbers)
    def begin(self, names: list[str], number: int) -> None:
        self.scene = Scene.made(Path(self._folder.name), names, names[number % len(names)])
        self.input_somewhere([3, 0, 1_500_000], names[:1])
        self.input_somewhere([1000, 1000], names[:1], merged=True)

    def one(self, number: int) -> str:
        """One of the sites."""
        return self.now.names[number % len(self.now.names)]

    @rule(
        sizes=st.lists(st.sampled_from([0, 1, 1000, 1_200_000]), min_size=1, max_size=5),
        at=st.lists(places, max_size=3, unique=True),
        merged=st.booleans(),
    )
    def input_somewhere(self, sizes: list[int], at: list[str], merged: bool = False) -> None:
        there = [name for name in at if name in self.now.names] or [self.now.names[0]]
        name = self.now.store(sizes, there)
        params: dict[str, Any] = reading(f"t{self.now.n}", name, prodSourceLabel="managed", mergeOutput=merged or None)
        submitted(params)

    @rule(number=numbers, to=numbers)
    def a_file_is_wished(self, number: int, to: int) -> None:
        files = list(CatalogueFile.objects.filter(moving=False).order_by("id"))
        asked(wanted(files[number % len(files)], self.one(to)))

    @rule(rounds=st.integers(1, 3))
    def agents_run(self, rounds: int) -> None:
        run_agents(rounds)

    @rule()
    def files_move(self) -> None:
        self.now.run("transfer")
        self.now.copy()
        self.now.run("transfer")

    @rule(step=st.sampled_from(MOVER_STEPS), after=st.booleans())
    def a_mover_dies(self, step: str, after: bool) -> None:
        self.now.run("transfer")
        self.now.copy_until(step, after=after)

    @rule()
    def a_destination_has_no_room(self) -> None:
        self.now.run("transfer")
        self.now.copy_until("publish", after=False, room=False)

    @rule(step=st.sampled_from(AGENT_STEPS), after=st.booleans(), copied=st.booleans())
    def an_agent_dies(self, step: tuple[str, object, str], after: bool, copied: bool) -> None:
        name, target, function = step
        if copied:
            self.now.copy()
        with killed_at(target, function, after=after):
            run_agent(name, looked=True)

    @rule(number=numbers, n=st.integers(1, 3))
    def pilots_take_jobs(self, number: int, n: int) -> None:
        for _ in range(n):
            self.now.take(self.one(number))

    @rule(number=numbers, how=st.sampled_from(["well", "well", "well", "badly", "never"]))
    def a_pilot_ends(self, number: int, how: str) -> None:
        """If one has a job: not a condition of the rule, as the same steps may give a pilot a job once and once not."""
        if not self.now.leases:
            return
        leased = self.now.leases[number % len(self.now.leases)]
        if how == "never":
            self.now.vanish(leased)
        else:
            self.now.settle(leased, well=how == "well")

    @rule(number=numbers, how=st.sampled_from(["gone", "damaged", "other size"]))
    def a_copy_is_harmed(self, number: int, how: str) -> None:
        self.now.harm(number, how)

    @rule(number=numbers)
    def a_root_goes(self, number: int) -> None:
        self.now.move_away(self.one(number))

    @rule(number=numbers)
    def a_root_comes_back(self, number: int) -> None:
        self.now.bring_back(self.one(number))

    @rule(number=numbers, status=st.sampled_from(["online", "offline"]))
    def a_queue_changes(self, number: int, status: str) -> None:
        ComputingQueue.objects.filter(name=self.one(number)).update(status=status)

    @rule()
    def time_passes(self) -> None:
        self.now.pass_time()

    @rule(number=numbers)
    def an_operator_cancels(self, number: int) -> None:
        ids = list(Transfer.objects.filter(ended_at=None).order_by("id").values_list("id", flat=True))
        if ids:
            cancel_transfers([ids[number % len(ids)]], "user:op", "not needed")

    @rule(number=numbers)
    def a_job_is_killed(self, number: int) -> None:
        jobs = list(Job.objects.filter(ended_at=None).order_by("id"))
        if jobs:
            job = jobs[number % len(jobs)]
            kill_jobs([JobVersion(job.id, job.epoch, job.status, job.task_id)], "user:ada", "not needed")

    @rule(number=numbers)
    def a_task_is_killed(self, number: int) -> None:
        ids = list(Task.objects.filter(ended_at=None, status="running").order_by("id").values_list("id", flat=True))
        if ids:
            command(ids[number % len(ids)], "kill", "user:ada", "not needed")

    @rule(number=numbers, swept=st.booleans())
    def a_task_is_paused_or_resumed(self, number: int, swept: bool) -> None:
        tasks = list(Task.objects.filter(ended_at=None).exclude(status__in=TASK.commanded).order_by("id"))
        if tasks:
            task = tasks[number % len(tasks)]
            paused = task.status == "paused"
            if paused or task.status in COMMANDS["pause"].states:
                with suppress(Refused):  # it is reassigned
                    command(task.id, "resume" if paused else "pause", "user:ada", "for a while")
        if swept:
            self.now.run("command")

    @precondition(lambda _: THOROUGH)
    @rule(number=numbers, name=st.sampled_from(["priority", "release", "tries", "kill", "soft", "nokill"]), swept=st.booleans())
    def a_task_is_changed(self, number: int, name: str, swept: bool) -> None:
        wishes = {"priority": {"priority": number}, "release": {}, "tries": {"n": 1}}
        row = CHANGES[name if name in wishes else "reassign"]
        tasks = [task for task in Task.objects.order_by("id") if row.suits(task.status, task.old_status)]
        if tasks:
            wish, _ = row.read(wishes.get(name, {"site": "", "jobs": name}))
            with suppress(Refused):  # another command is carried out
                change_task(OPERATOR, tasks[number % len(tasks)], row, wish)
        if swept:
            self.now.run("command")

    @rule(number=numbers, short=st.booleans())
    def caches_are_emptied(self, number: int, short: bool) -> None:
        if short:
            set_override("transfers", f"WATERMARK_{self.one(number)}_DISK", 10**9, who="test", why="nothing is free enough")
        Replica.objects.filter(kind="cache").update(keep_until=F("last_used") - AN_HOUR)
        self.now.run("evict")

    @invariant()
    def it_holds(self) -> None:
        if self.scene is not None:
            counted["steps"] += 1
            holds.always(self.scene)

    def teardown(self) -> None:
        try:
            if self.scene is not None:
                self.heal()
                counted["transfers"] += Transfer.objects.count()
                counted["merges"] += Job.objects.filter(kind=JobKind.MERGE, status="finished").count()
                holds.in_the_end(self.scene)
                self.look_in_the_end()
        finally:
            transaction.set_rollback(True)
            self._undone.__exit__(None, None, None)
            gdpconfig.reading.forget()
            self._folder.cleanup()

    def look_in_the_end(self) -> None:
        """For machines that know more that must hold then."""

    def heal(self) -> None:
        """Everything is back, and everybody works until nothing is left to do."""
        scene = self.now
        for name in scene.names:
            scene.bring_back(name)
        ComputingQueue.objects.update(status="online")
        for id_ in Task.objects.filter(status="paused").values_list("id", flat=True):
            command(id_, "resume", "user:ada")
        for leased in list(scene.leases):
            scene.settle(leased, well=True)
        for _ in range(HEALING_ROUNDS):
            scene.pass_time()
            run_agents(1, ROUND)
            scene.copy()
            run_agents(1, ("transfer", "evict"))
            for name in scene.names:
                while scene.take(name):
                    scene.settle(scene.leases[-1], well=True)
            if self.quiet():
                return

    def quiet(self) -> bool:
        waiting = Task.objects.filter(ended_at=None).exists() or TransferWish.objects.filter(closed_at=None).exists()
        waiting = waiting or Replica.objects.filter(state="deleting").exists()
        return not waiting and not Transfer.objects.filter(ended_at=None).exists()


def test_files_that_move_keep_their_content_and_nobody_waits_for_ever(record_property: Any) -> None:
    set_override("transfers", "UPKEEP", 0, who="test", why="look at once")
    run_state_machine_as_test(
        DataOnTheMove,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, suppress_health_check=list(HealthCheck),
            database=None, derandomize=not THOROUGH, phases=[Phase.generate],
        ),
    )  # fmt: skip
    assert counted["merges"] > 0
    steps, transfers, merges = (counted[name] for name in ("steps", "transfers", "merges"))
    record_property("told", f"data on the move: {EXAMPLES} grids, {steps} steps, {transfers} transfers, {merges} merges")
