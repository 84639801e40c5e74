"""One running system on which scenarios are played, one after the other: `python -m tests.scenarios.stage [NAME ...]`.

Web server, worker and beat run with default configuration, but for what a scenario says of time; the pilots are simulated. Each
scenario prints one JSON line: what was seen.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from benchmarks.flow import VO, Campaign, dealt, pilots_at, some_queues, system_on
from benchmarks.server import Bench, bench
from benchmarks.simulated_pilots import Slot
from broker_site.roof.supervisor import System

PATIENCE_S = 90.0


@dataclass(slots=True)
class Stage:
    """The system, its queues with their enrolment secrets, and the user who submits."""

    server: Bench
    system: System
    queues: list[tuple[str, str]]
    campaign: Campaign
    tasks: int = 0

    def submit(self, name: str, jobs: int, **more: Any) -> int:
        """A task of so many jobs: its number."""
        self.tasks += 1
        name = f"{name}.{self.tasks}"
        self.campaign.dataset(f"{name}.in", jobs)
        return self.campaign.submit(name, **more)

    @contextmanager
    def pilots(self, n: int, run_s: float, at: list[int] | None = None, cores: int = 1) -> Iterator[Any]:
        """So many pilots at all queues, or at those of these positions."""
        where = dealt([self.queues[i] for i in at] if at is not None else self.queues)
        with pilots_at(self.system.url, where, n, Slot(cores, run_s)) as counts:
            yield counts

    @contextmanager
    def pilots_where_jobs_wait(self, n: int, run_s: float, life_s: float, idle_s: float) -> Iterator[Any]:
        """So many pilots at a time, each for some seconds: the next goes to a queue where jobs wait, by their number.

        One that gets no job leaves after `idle_s`, as those do that a factory starts where jobs wait.
        """
        waiting = """SELECT q.name, count(*) FROM brokerage_job j JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
            WHERE j.status = 'activated' GROUP BY q.name"""
        secrets = dict(self.queues)

        def where(number: int) -> tuple[str, str]:
            with closing(self.server.connect()) as connection, connection.cursor() as cursor:
                cursor.execute(waiting)
                jobs = dict(cursor.fetchall()) or {self.queues[number % len(self.queues)][0]: 1}
            (name,) = random.choices(list(jobs), list(jobs.values()))
            return name, secrets[name]

        with pilots_at(self.system.url, where, n, Slot(1, run_s, life_s, idle_s)) as counts:
            yield counts

    def until(self, true: Callable[[], Any], what: str, longest_s: float = PATIENCE_S) -> float:
        """Wait for something: how long it took, s."""
        began = time.monotonic()
        while not true():
            assert time.monotonic() - began < longest_s, f"{what}: not in {longest_s:.0f} s; {self.state()}"
            time.sleep(0.05)
        return time.monotonic() - began

    def number(self, query: str) -> float:
        return self.server.number(query)

    def done(self, *tasks: int) -> bool:
        """Whether these tasks have ended, all of them well."""
        ids = ", ".join(map(str, tasks))
        return self.number(f"SELECT count(*) FROM workqueues_task WHERE id IN ({ids}) AND status <> 'done'") == 0

    def finished(self, task: int) -> int:
        """Jobs of a task that finished."""
        return int(self.number(f"SELECT count(*) FROM brokerage_job WHERE task_id = {task} AND status = 'finished'"))

    def slots_of(self, tasks: Sequence[int], seconds: float) -> list[float]:
        """Slots that each of these tasks has, on the average of so long."""
        seen, end = [0] * len(tasks), time.monotonic() + seconds
        looks = 0
        while time.monotonic() < end:
            for place, task in enumerate(tasks):
                held = f"SELECT count(*) FROM brokerage_job WHERE task_id = {task} AND lease_holder IS NOT NULL"
                seen[place] += int(self.number(held))
            looks += 1
            time.sleep(0.2)
        return [n / looks for n in seen]

    def kill(self, task: int) -> None:
        """End a task, whatever it has left."""
        from workqueues.ledger.commands import command
        from workqueues.models import Task

        command(task, "kill", "test")
        self.until(lambda: Task.objects.get(id=task).status == "aborted", "the task is gone")

    def idle(self) -> tuple[float, float]:
        """Seconds of idle slots so far, and those beside work, as the pages tell them."""
        hours = "SELECT coalesce(sum({}), 0) FROM brokerage_idlehour"
        return self.number(hours.format("idle_s")), self.number(hours.format("beside_s"))

    def state(self) -> dict[str, Any]:
        """How the tasks and jobs stand, for who has to find out why nothing moves."""
        from django.db.models import Count

        from brokerage.models import Job
        from workqueues.models import Task

        tasks = Task.objects.exclude(status="done").values_list("id", "status", "error_dialog", "next_look_at")[:5]
        jobs = Job.objects.filter(ended_at=None).values_list("computing_queue__name", "status").annotate(n=Count("id"))
        return {"tasks": [list(map(str, task)) for task in tasks], "jobs": [list(map(str, job)) for job in jobs]}


def at_rest(stage: Stage, n: int = 7) -> dict[str, Any]:
    """One small task at a time, and pilots that wait: how long agents take to go on with what another commit left, 95 of 100.

    What lies between two moves of a task has the transaction of the first in it, and what the second agent reads and decides.
    """
    from workqueues.models import Task, TaskChange

    sessions = "SELECT sessions FROM pg_stat_database WHERE datname = current_database()"
    with stage.pilots(4, 0.0):
        tasks, before = [], 0.0
        for number in range(n + 2):
            if number == 2:
                before = stage.number(sessions)
            tasks.append(stage.submit("rest", 1))
            stage.until(lambda: Task.objects.get(id=tasks[-1]).status == "done", "the task is done")
            time.sleep(0.5)
    moves = TaskChange.objects.filter(task_id__in=tasks[2:])
    ready = moves.filter(new__in=("registered", "defined", "ready", "running")).order_by("task_id", "epoch")
    at = [(change.task_id, change.at) for change in ready]
    took = sorted((b - a).total_seconds() for (task, a), (same, b) in pairwise(at) if task == same)
    return {
        "moves": len(took),
        "median_s": took[len(took) // 2],
        "p95_s": took[int(0.95 * len(took))],
        "sessions": stage.number(sessions) - before,
    }


def few_slots(stage: Stage) -> dict[str, Any]:
    """Many short jobs and few slots: the slots are kept busy."""
    with stage.pilots(4, 0.4):
        tasks = [stage.submit("few", 25) for _ in range(3)]
        stage.until(lambda: sum(map(stage.finished, tasks)) >= 12, "the first jobs end")
        before, began = stage.idle(), time.monotonic()
        stage.until(lambda: sum(map(stage.finished, tasks)) >= 62, "most jobs end")
        after, seconds = stage.idle(), time.monotonic() - began
        stage.until(lambda: stage.done(*tasks), "the tasks are done")
    return {"busy": 50 * 0.4 / (4 * seconds), "beside": (after[1] - before[1]) / (4 * seconds)}


def long_and_short(stage: Stage) -> dict[str, Any]:
    """One long task and many short ones of the same priority: the short ones need not wait for the long one."""
    with stage.pilots(4, 0.2):
        long_task = stage.submit("long", 600)
        stage.until(lambda: stage.finished(long_task) >= 8, "the long task runs")
        short = [stage.submit("short", 2) for _ in range(6)]
        stage.until(lambda: stage.done(*short), "the short tasks are done")
        left = 600 - stage.finished(long_task)
        stage.kill(long_task)
    return {"left_of_the_long_one": left}


def misfits(stage: Stage) -> dict[str, Any]:
    """Jobs with a tag that no pilot has wait at every queue, as many as may; then comes a task whose jobs any pilot can do."""
    with stage.pilots(8, 0.4):
        with_tag = [stage.submit("misfit", 100, tags=["GPU"]) for _ in range(2)]
        stage.until(lambda: stage.number("SELECT count(*) FROM brokerage_job WHERE status = 'activated'") >= 8, "jobs wait")
        plain = stage.submit("plain", 60)
        seconds = stage.until(lambda: stage.done(plain), "the task that fits is done")
        for task in with_tag:
            stage.kill(task)
    return {"seconds_of_plain": seconds}


def queue_offline(stage: Stage) -> dict[str, Any]:
    """A queue goes offline under waiting jobs: they run elsewhere."""
    from broker_site.foundation.gdpconfig import set_override
    from brokerage.ledger import grid_overrides
    from brokerage.models import ComputingQueue, DeclaredSlots, Job, LocalOverride

    set_override("jobbroker", "REBROKER_STOPPED", 3.0, who="test", why="time is compressed")
    name = stage.queues[3][0]
    slots = DeclaredSlots.objects.create(queue=ComputingQueue.objects.get(name=name), n=8)
    only = [queue for queue, _ in stage.queues if queue != name]
    task = stage.submit("offline", 8, excludedSite=only)
    stage.until(lambda: Job.objects.filter(task_id=task, status="activated").count() == 8, "jobs wait at the queue")
    grid_overrides.set_override(
        LocalOverride(kind="queue", name=name, attribute="status", value="offline", reason="fire", who="test")
    )
    other = stage.submit("beside", 4)
    with stage.pilots(3, 0.1, at=[0, 1, 2]):
        others_s = stage.until(lambda: stage.done(other), "another task is done")
        closed_s = stage.until(lambda: not Job.objects.filter(task_id=task, status="activated").exists(), "jobs leave")
        grid_overrides.end_override(LocalOverride.objects.get(name=name))
    slots.delete()
    with stage.pilots(4, 0.1):
        stage.until(lambda: stage.done(task), "the task is done once the queue is back")
    return {"others_s": others_s, "closed_s": closed_s}


def override_frees(stage: Stage) -> dict[str, Any]:
    """Tasks that fit no queue wait; an override makes room, and they go on at once."""
    from brokerage.ledger import grid_overrides
    from brokerage.models import LocalOverride
    from workqueues.models import Task

    tasks = [stage.submit("large", 2, ramCount=12_000) for _ in range(3)]
    stage.until(lambda: Task.objects.filter(id__in=tasks, status="pending").count() == 3, "the tasks wait")
    with stage.pilots(4, 0.0):
        grid_overrides.set_override(
            LocalOverride(kind="queue", name=stage.queues[0][0], attribute="maxrss", value="16000", reason="more", who="test")
        )
        freed_s = stage.until(lambda: Task.objects.filter(id__in=tasks, status="pending").count() < 3, "the first goes on")
        stage.until(lambda: stage.done(*tasks), "the tasks are done")
    return {"freed_s": freed_s}


def many_wait(stage: Stage, n: int = 40) -> dict[str, Any]:
    """Many tasks wait for one criterion, which passes: all of them run."""
    from brokerage.ledger import grid_overrides
    from brokerage.models import LocalOverride, WaitGroup
    from workqueues.models import Task

    tasks = [stage.submit("crowd", 1, coreCount=4) for _ in range(n)]
    waiting = Task.objects.filter(id__in=tasks, status="pending")
    longest_s = max(PATIENCE_S, n * 0.5)
    stage.until(lambda: waiting.count() == n, "all tasks wait", longest_s)
    groups = WaitGroup.objects.filter(waits__task_id__in=tasks).distinct().count()
    for queue, _ in stage.queues:
        override = LocalOverride(kind="queue", name=queue, attribute="corecount", value="4", reason="larger slots", who="test")
        grid_overrides.set_override(override)
    with stage.pilots(8, 0.0, cores=4):
        went_s = stage.until(lambda: waiting.count() < n, "the first go on")
        all_s = stage.until(lambda: stage.done(*tasks), "all are done", longest_s)
    return {"groups": groups, "went_s": went_s, "all_s": all_s}


def shares(stage: Stage, seconds: float = 12.0) -> dict[str, Any]:
    """Two shares of 70 and 30: both have work, and each gets its part; then one has none, and the other gets all."""
    from broker_site.foundation.gdpconfig import set_override
    from workqueues.models import GlobalShare

    set_override("agents", "PERIOD_share", 0.2, who="test", why="jobs of seconds stand for jobs of minutes")
    for name, value in (("Large", 70), ("Small", 30)):
        GlobalShare.objects.create(name=name, vo=VO, value=value, processing_type=name.lower())
    pilots = 24
    with stage.pilots(pilots, 3.0):
        large, small = (stage.submit(name, 600, processingType=name) for name in ("large", "small"))
        stage.until(lambda: min(map(stage.finished, (large, small))) >= pilots / 2, "both shares run")
        idle = stage.idle()[1]
        both = stage.slots_of((large, small), seconds)
        stage.kill(large)
        alone = stage.slots_of((large, small), seconds / 2)
        beside = stage.idle()[1] - idle
        stage.kill(small)
    GlobalShare.objects.all().delete()
    return {
        "part_of_the_large_one": both[0] / sum(both),
        "busy": sum(both) / pilots,
        "busy_alone": sum(alone) / pilots,
        "beside": beside / (pilots * 1.5 * seconds),
    }


def many_queues(stage: Stage, n: int = 137) -> dict[str, Any]:
    """A grid of many queues, at which pilots come and go."""
    crowd = some_queues(stage.server, n, first=len(stage.queues))
    stage.queues += crowd
    stage.campaign.copies = len(stage.queues)  # input is everywhere: its files are no real ones that a mover could bring
    with stage.pilots_where_jobs_wait(24, 0.5, life_s=10.0, idle_s=0.5):
        before, began = stage.idle(), time.monotonic()
        tasks = [stage.submit("crowd", 100) for _ in range(3)]
        first_s = stage.until(lambda: sum(map(stage.finished, tasks)), "the first job ends")
        all_s = stage.until(lambda: stage.done(*tasks), "the tasks are done")
        after, seconds = stage.idle(), time.monotonic() - began
    return {"first_s": first_s, "all_s": first_s + all_s, "beside": (after[1] - before[1]) / (24 * seconds)}


def bound_early_and_late(stage: Stage, n: int = 80) -> dict[str, Any]:
    """The same campaign bound early, late, and open after 2 s, where two of four queues take ten times as long for a job.

    Seconds that jobs waited for a pilot, and seconds of idle slots, those beside work apart.
    """
    from broker_site.foundation.gdpconfig import remove_override, set_override

    set_override("agents", "PERIOD_slots", 1.0, who="test", why="idle slots of seconds stand for those of minutes")
    copies, stage.campaign.copies = stage.campaign.copies, len(stage.queues)  # every queue can read the input
    seen = {}
    for binding, more in (("early", {}), ("late", {}), ("late_after", {"bindingAfter": 2})):
        before, began = stage.idle(), time.monotonic()
        with stage.pilots(4, 0.4, at=[2, 3]), stage.pilots(4, 4.0, at=[0, 1]):
            task = stage.submit(binding, n, binding=binding, **more)
            stage.until(partial(stage.done, task), "the task is done")
        idle = [after - so_far for after, so_far in zip(stage.idle(), before, strict=True)]
        seen[binding] = {"all_s": time.monotonic() - began, "idle_s": idle[0], "beside_s": idle[1], **_waits(stage, task)}
    stage.campaign.copies = copies
    remove_override("agents", "PERIOD_slots", who="test", why="the others go by the usual period")
    return {binding: {what: round(value, 1) for what, value in line.items()} for binding, line in seen.items()}


def all_bound_late(stage: Stage, n: int = 4) -> dict[str, Any]:
    """Tasks of several sizes, all bound late by the key, or open after 2 s; meanwhile a queue stops and comes back, a task is
    paused and resumed, one is killed: how long slots idled beside work, as a part of their time, and what is left open.
    """
    from broker_site.foundation.gdpconfig import set_override
    from brokerage.models import ComputingQueue
    from workqueues.ledger.commands import command

    copies, stage.campaign.copies = stage.campaign.copies, len(stage.queues)
    set_override("dispatch", "BINDING", "late", who="test", why="all late")
    before, began = stage.idle(), time.monotonic()
    with stage.pilots(8, 0.4):
        after = {"binding": "late_after", "bindingAfter": 2}
        tasks = [
            stage.submit(
                "open",
                60,
                taskPriority=500 + number % 2,
                ramCount=1000 + 1500 * (number % 4 > 1),
                **(after if number % 3 else {}),
            )
            for number in range(n)
        ]
        doomed = stage.submit("doomed", 60)
        stage.until(lambda: sum(map(stage.finished, tasks)) > 2 * n, "jobs end")
        ComputingQueue.objects.filter(name=stage.queues[0][0]).update(status="offline")
        command(tasks[0], "pause", "test")
        stage.kill(doomed)
        time.sleep(5)
        ComputingQueue.objects.filter(name=stage.queues[0][0]).update(status="online")
        command(tasks[0], "resume", "test")
        stage.until(lambda: stage.done(*tasks), "the tasks are done", PATIENCE_S + n * 60 * 0.4)
        beside, seconds = stage.idle()[1] - before[1], time.monotonic() - began
    set_override("dispatch", "BINDING", "early", who="test", why="as it was")
    stage.campaign.copies = copies
    jobs, of_tasks = "SELECT count(*) FROM brokerage_job WHERE", ", ".join(map(str, [*tasks, doomed]))
    return {
        "jobs": stage.number(f"{jobs} task_id IN ({of_tasks})"),
        "left": stage.number(f"{jobs} task_id IN ({of_tasks}) AND ended_at IS NULL"),
        "all_s": seconds,
        "beside": beside / (8 * seconds),
        "longest_wait_s": max(_waits(stage, task)["longest_wait_s"] for task in tasks),
    }


def _waits(stage: Stage, task: int) -> dict[str, float]:
    """How long the jobs of a task waited for a pilot, s."""
    waited = f"""SELECT percentile_disc({{}}) WITHIN GROUP (ORDER BY extract(epoch FROM c.at - s.created_at))
        FROM brokerage_job j JOIN brokerage_jobspec s ON s.job_id = j.id
        JOIN brokerage_jobchange c ON c.job_id = j.id AND c.new = 'sent' WHERE j.task_id = {task}"""
    parts = {"median_wait_s": 0.5, "p95_wait_s": 0.95, "longest_wait_s": 1.0}
    return {name: stage.number(waited.format(part)) for name, part in parts.items()}


SCENARIOS: dict[str, Callable[..., dict[str, Any]]] = {
    each.__name__: each
    for each in (
        at_rest,
        few_slots,
        long_and_short,
        misfits,
        shares,
        queue_offline,
        override_frees,
        bound_early_and_late,
        all_bound_late,
        many_wait,
        many_queues,
    )
}


def main(names: list[str]) -> int:
    """Play these scenarios, or all; `NAME=N` plays one with so many tasks, or queues."""
    with bench() as server, system_on(server, "scenarios") as system:
        stage = Stage(server, system, some_queues(server), Campaign(server, system, 0, 0))
        for word in names or SCENARIOS:
            began = time.monotonic()
            name, _, n = word.partition("=")
            seen = SCENARIOS[name](stage, **({"n": int(n)} if n else {}))
            print(json.dumps({"scenario": name, "seconds": round(time.monotonic() - began, 1), **seen}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
