"""Whatever users and operators order, in whatever order, while jobs fail, files get lost, storage goes and agents die: no task
stands still for ever, and each ends as its files say.

The grid and all that happens to its files are those of `test_data_on_the_move`; here are tasks of every kind, and every command.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.db import connection
from django.db.models import F
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from broker_site.foundation.access.problems import Refused
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.kernel.machine import NotAllowed
from brokerage.agents import assess, finish, generate, merge, reap
from brokerage.agents import command as commanding
from brokerage.ledger import job_openings, lease
from brokerage.models import ComputingQueue, Job, JobOpening
from brokerage.rules.dispatch.settlement import Report
from brokerage.rules.facts.job_kind import JobKind
from tests.builders import parameters, reading, submitted
from tests.chaos.checker import RULES, read_rules
from tests.stateful.scene import killed_at
from tests.stateful.test_data_on_the_move import THOROUGH, DataOnTheMove, numbers
from workqueues.agents import feed, refine, wake
from workqueues.ledger.commands import command
from workqueues.models import EventRange, File, Task
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.task.commands import COMMANDS
from workqueues.states import MASTER_TYPES, TASK

EXAMPLES, STEPS = (300, 80) if THOROUGH else (8, 25)

pytestmark = [pytest.mark.django_db, *([pytest.mark.long] if THOROUGH else [])]

KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "scouted": {"nEvents": 60, "nScouts": 2, "skipScout": None},
    "scouted production": {"nEvents": 60, "nScouts": 2, "skipScout": None, "prodSourceLabel": "managed"},
    "merging": {"mergeOutput": True},
    "scouted and merging": {"nEvents": 60, "nScouts": 2, "skipScout": None, "mergeOutput": True},
    "with a goal": {"goal": 50},
    "tried once": {"maxAttempt": 1},
    "never given up": {"disableAutoFinish": True},
    "after a step": {"preproSpec": {"transPath": "choose.py"}},
    "late": {"binding": "late", "instantiateTmplSite": True},
    "open after a while": {"binding": "late_after", "bindingAfter": 600},
    "late and merging": {"binding": "late", "mergeOutput": True},
    "late, scouted": {"binding": "late", "nEvents": 60, "nScouts": 2, "skipScout": None},
}
TASK_STEPS: tuple[tuple[str, object, str], ...] = (
    ("refine", refine, "define"),
    ("refine", refine, "begin_step"),
    ("feed", feed, "load_inputs"),
    ("feed", feed, "finish_feeding"),
    ("generate", generate, "jobs_from"),
    ("generate", generate, "release"),
    ("assess", assess, "write"),
    ("assess", assess, "scale_out"),
    ("merge", merge, "make_merge_jobs"),
    ("command", commanding, "kill_jobs"),
    ("command", commanding, "kill_children"),
    ("command", commanding, "carry_out_retry"),
    ("command", commanding, "carry_out_finish"),
    ("wake", wake, "wake_task"),
    ("reap", reap, "open_due"),
    ("reap", job_openings, "tell_of_jobs"),
    ("reap", reap, "rebroker_open"),
    ("finish", finish, "prepare_task"),
    ("finish", finish, "kill_children"),
    ("finish", finish, "end_task"),
    ("finish", finish, "finish_step"),
)
"""Agent, and a function that it calls and at which it dies."""
OUT_OF_MEMORY = Report("failed", error_code="PAYLOAD_MEMORY", error_message="used more than 500 MB of memory", exit_code=1)
ELEVEN_DAYS = timedelta(days=11)
ENDS = ("b", "e", "g", "k")
"""Letters of the rules of the chaos test that hold once all is quiet."""
BY_COMMAND = "the number of tries is not the number of ended uses"
"""A task that is told to finish gives up what is left, with all its tries."""
counted = Counter[str]()


def states_of_inputs(task: Task) -> list[str]:
    """Those of all files that the task was to process."""
    inputs = File.objects.filter(dataset__task=task, type__in=MASTER_TYPES, dataset__master=None, dataset__excluded=False)
    return list(inputs.order_by("id").values_list("status", flat=True))


def still(task: Task) -> tuple[Any, ...]:
    """What stands of a task that did not end, to be told."""
    files = File.objects.filter(dataset__task=task).order_by("id")
    columns = ("type", "status", "held", "retry_due", "look_due", "attempt_nr", "max_attempt")
    kept = (task.id, task.status, task.old_status, task.error_dialog, task.split_rule, task.next_look_at, task.locked_by)
    return (*kept, list(files.values_list(*columns)))


def end_by_files(task: Task) -> str:
    """How a task with these files ends (decision D15): done with all, but not where its parent is not, finished with some, failed
    with none, or before its preprocessing step was over.
    """
    if parse(task.split_rule).in_step:
        return "failed"
    states = states_of_inputs(task)
    some = "finished" in states or EventRange.objects.filter(task=task, status="done").exists()
    parents_done = not Task.objects.filter(id=task.parent_tid or task.id).exclude(id=task.id).exclude(status="done").exists()
    return "done" if set(states) == {"finished"} and parents_done else "finished" if some else "failed"


class TaskLife(DataOnTheMove):
    """The same grid, with tasks of every kind, and somebody who gives every command to any of them."""

    # What happens to movers and caches alone is tried there, and commands are given otherwise here.
    a_mover_dies = a_destination_has_no_room = a_file_is_wished = caches_are_emptied = an_agent_dies = None  # type: ignore[assignment]
    an_operator_cancels = a_task_is_killed = a_task_is_paused_or_resumed = None  # type: ignore[assignment]

    @rule(kind=st.sampled_from(sorted(KINDS)))
    def a_task_is_submitted(self, kind: str) -> None:
        self.now.n += 1
        submitted(parameters(f"t{self.now.n}", **KINDS[kind]))

    @rule(number=numbers, merging=st.booleans())
    def a_child_is_submitted(self, number: int, merging: bool) -> None:
        parents = list(Task.objects.order_by("id"))
        parent = parents[number % len(parents)]
        stream = "EVT" if parent.params.task_params.get("noInput") else "OUT"
        self.now.n += 1
        more = {"parentTaskName": parent.task_name, "mergeOutput": merging or None}
        submitted(reading(f"t{self.now.n}", f"{parent.task_name}.{stream}", **more))

    @rule(
        orders=st.lists(
            st.tuples(numbers, numbers, st.booleans(), st.sampled_from([False, False, False, True])), min_size=1, max_size=4
        )
    )
    def commands_are_given(self, orders: list[tuple[int, int, bool, bool]]) -> None:
        for order in orders:
            self._command(*order)

    @rule(number=numbers, choice=numbers, turned=st.booleans())
    def one_command_is_given_and_carried_out(self, number: int, choice: int, turned: bool) -> None:
        self._command(number, choice, turned, wild=False)
        self.agents_run(1)

    def _command(self, number: int, choice: int, turned: bool, wild: bool) -> None:
        """One that the task takes, or, if wild, any."""
        tasks = list(Task.objects.order_by("id"))
        task = tasks[number % len(tasks)]
        names = [name for name, row in sorted(COMMANDS.items()) if wild or task.status in row.states] or sorted(COMMANDS)
        row = COMMANDS[names[choice % len(names)]]
        options = {option.name: option.default != turned for option in row.options}
        try:
            command(task.id, row.name, "user:ada", row.kept("because", options))
            counted[f"{row.name} of {task.status}"] += 1
        except NotAllowed:
            assert task.status not in row.states
        except Refused:
            assert (row.name, task.command) == ("pause", "reassign")

    @rule(n=st.integers(1, 6))
    def work_is_done(self, n: int) -> None:
        """Agents make jobs, and pilots do some."""
        self.agents_run(2)
        for name in self.now.names:
            for _ in range(n):
                if self.now.take(name):
                    self.now.settle(self.now.leases[-1], well=True)
        self.agents_run(1)

    @rule(number=numbers)
    def a_job_runs_out_of_memory(self, number: int) -> None:
        if self.now.leases:
            self.now.report(self.now.leases.pop(number % len(self.now.leases)), OUT_OF_MEMORY)

    @rule(step=st.sampled_from(TASK_STEPS), after=st.booleans())
    def an_agent_of_tasks_dies(self, step: tuple[str, object, str], after: bool) -> None:
        name, target, function = step
        with killed_at(target, function, after=after):
            run_agent(name, looked=True)

    @rule(number=numbers, after=st.booleans())
    def a_pilot_dies_as_it_gets_a_job(self, number: int, after: bool) -> None:
        with killed_at(lease, "run_together", after=after):
            self.now.take(self.one(number))

    @rule(stopped=st.booleans())
    def jobs_wait_for_long(self, stopped: bool) -> None:
        """So that others may have them; or all queues stop, and what is open is brokered anew."""
        JobOpening.objects.update(due=TransactionNow() - timedelta(seconds=1))
        if stopped:
            ComputingQueue.objects.update(status="offline", status_since=TransactionNow() - timedelta(hours=2))
        run_agent("reap", looked=True)
        ComputingQueue.objects.update(status="online")

    @rule()
    def days_go_by(self) -> None:
        Task.objects.filter(status="exhausted").update(status_since=F("status_since") - ELEVEN_DAYS)
        Task.objects.filter(frozen_time__isnull=False).update(frozen_time=F("frozen_time") - ELEVEN_DAYS)
        self.now.pass_time()

    def heal(self) -> None:
        for _ in range(4):  # what is exhausted meanwhile, or throttled, has its time
            super().heal()
            if self.quiet():
                break
            self.days_go_by()
        left = Task.objects.filter(status="exhausted")
        for task in left:  # nobody but who submitted it ends one with disableAutoFinish
            assert "DF" in task.split_rule
            command(task.id, "finish", "user:ada", "enough")
        if left:
            super().heal()

    def look_in_the_end(self) -> None:
        """Once all is quiet."""
        counted["jobs that were open"] += Job.objects.filter(task_queue__computing_queue=None, status="finished").count()
        kinds = Job.objects.filter(status="finished").values_list("kind", flat=True)
        counted.update(f"finished {JobKind(kind).label} jobs" for kind in kinds)
        counted["tasks"] += Task.objects.count()
        assert not Task.objects.exclude(quarantined_at=None).exists()
        left = Task.objects.filter(ended_at=None).exclude(error_dialog__startswith="waiting for the parent")
        assert not left, str([still(task) for task in left])
        wrong = {}
        with connection.cursor() as cursor:
            for letter, what, sql in read_rules(RULES.read_text(encoding="utf-8")):
                if letter in ENDS and what != BY_COMMAND:
                    cursor.execute(sql)
                    if rows := cursor.fetchall():
                        wrong[what] = rows[:5]
        assert wrong == {}
        for task in Task.objects.filter(status__in=TASK.settled):
            assert task.status == end_by_files(task), (task.id, task.error_dialog, states_of_inputs(task))


def test_every_task_that_is_left_alone_ends_as_its_files_say(record_property: Any) -> None:
    set_override("transfers", "UPKEEP", 0, who="test", why="look at once")
    run_state_machine_as_test(
        TaskLife,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, suppress_health_check=list(HealthCheck),
            database=None, derandomize=not THOROUGH, phases=[Phase.generate],
        ),
    )  # fmt: skip
    told = ", ".join(f"{n} {what}" for what, n in sorted(counted.items()) if " of " not in what)
    commands = sum(n for what, n in counted.items() if " of " in what)
    record_property("told", f"life of tasks: {EXAMPLES} grids, {commands} commands, {told}")
    assert commands > EXAMPLES
