"""One running system on which scenarios are played, one after the other: `python -m tests.scenarios.stage [NAME ...]`.

Web server, worker and beat run with default configuration, but for what a scenario says of time; the pilots are simulated. Each
scenario prints one JSON line: what was seen.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.flow import Campaign, four_queues, pilots_at, system_on
from benchmarks.server import Bench, bench
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
        where = [self.queues[i] for i in at] if at is not None else self.queues
        with pilots_at(self.system.url, where, n, run_s, cores) as counts:
            yield counts

    def until(self, true: Callable[[], Any], what: str) -> float:
        """Wait for something: how long it took, s."""
        began = time.monotonic()
        while not true():
            assert time.monotonic() - began < PATIENCE_S, f"{what}: not in {PATIENCE_S:.0f} s; {self.state()}"
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


def few_slots(stage: Stage) -> dict[str, Any]:
    """Many short jobs and few slots: the slots are kept busy."""
    with stage.pilots(4, 0.4):
        tasks = [stage.submit("few", 40) for _ in range(3)]
        stage.until(lambda: sum(map(stage.finished, tasks)) >= 12, "the first jobs end")
        before, began = stage.idle(), time.monotonic()
        stage.until(lambda: sum(map(stage.finished, tasks)) >= 100, "most jobs end")
        after, seconds = stage.idle(), time.monotonic() - began
        stage.until(lambda: stage.done(*tasks), "the tasks are done")
    return {"busy": 88 * 0.4 / (4 * seconds), "beside": (after[1] - before[1]) / (4 * seconds)}


def long_and_short(stage: Stage) -> dict[str, Any]:
    """One long task and many short ones of the same priority: the short ones need not wait for the long one."""
    from workqueues.ledger.commands import command
    from workqueues.models import Task

    with stage.pilots(4, 0.2):
        long_task = stage.submit("long", 600)
        stage.until(lambda: stage.finished(long_task) >= 8, "the long task runs")
        short = [stage.submit("short", 2) for _ in range(6)]
        stage.until(lambda: stage.done(*short), "the short tasks are done")
        left = 600 - stage.finished(long_task)
        command(long_task, "kill", "test")
        stage.until(lambda: Task.objects.get(id=long_task).status == "aborted", "the long task is gone")
    return {"left_of_the_long_one": left}


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


def many_wait(stage: Stage, n: int = 100) -> dict[str, Any]:
    """Many tasks wait for one criterion, which passes: all of them run."""
    from brokerage.ledger import grid_overrides
    from brokerage.models import LocalOverride, WaitGroup
    from workqueues.models import Task

    tasks = [stage.submit("crowd", 1, coreCount=4) for _ in range(n)]
    waiting = Task.objects.filter(id__in=tasks, status="pending")
    stage.until(lambda: waiting.count() == n, "all tasks wait")
    groups = WaitGroup.objects.filter(waits__task_id__in=tasks).distinct().count()
    for queue, _ in stage.queues:
        override = LocalOverride(kind="queue", name=queue, attribute="corecount", value="4", reason="larger slots", who="test")
        grid_overrides.set_override(override)
    with stage.pilots(8, 0.0, cores=4):
        went_s = stage.until(lambda: waiting.count() < n, "the first go on")
        all_s = stage.until(lambda: stage.done(*tasks), "all are done")
    return {"groups": groups, "went_s": went_s, "all_s": all_s}


SCENARIOS: dict[str, Callable[[Stage], dict[str, Any]]] = {
    each.__name__: each for each in (few_slots, long_and_short, queue_offline, override_frees, many_wait)
}


def main(names: list[str]) -> int:
    """Play these scenarios, or all."""
    with bench() as server, system_on(server, "scenarios") as system:
        stage = Stage(server, system, four_queues(server), Campaign(server, system, 0, 0))
        for name in names or SCENARIOS:
            began = time.monotonic()
            seen = SCENARIOS[name](stage)
            print(json.dumps({"scenario": name, "seconds": round(time.monotonic() - began, 1), **seen}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
