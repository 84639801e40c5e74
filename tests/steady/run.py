"""The whole system under a steady load: `python -m tests.steady.run --minutes 30`.

Its full rate is measured first; then tasks come at 80 % of that rate. One JSON line for each reading, and a last one with what is
to stay as it is: rate, memory of every process, bytes of a finished job, dead tuples, deadlocks, lines of level ERROR.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from benchmarks.flow import Campaign, dealt, pilots_at, some_queues, system_on
from benchmarks.server import Bench, bench
from benchmarks.simulated_pilots import Counts, Slot
from broker_site.roof.supervisor import System

SHARE = 0.8
PILOTS = 32
READINGS = 30
TASK_S = 2.0
"""A task comes so often, with as many jobs as the rate is to have in that time."""
ERROR = re.compile(r"\b(ERROR|CRITICAL|FATAL|PANIC)\b")


@dataclass(frozen=True, slots=True)
class Reading:
    """What is seen at a moment: seconds and finished jobs since the load began, and the state of processes and database."""

    at_s: float
    finished: int
    memory_mb: dict[str, float]
    database_mb: float
    dead: float
    """Dead tuples as a share of all, in the table that has most of them."""


class Watch:
    """Reads a running system."""

    def __init__(self, server: Bench, system: System, counts: Counts) -> None:
        self.server, self.system, self.counts = server, system, counts
        self.began, self.before = time.monotonic(), counts.finished
        self.deadlocks_before = self._deadlocks()

    def read(self) -> Reading:
        return Reading(
            at_s=round(time.monotonic() - self.began, 1),
            finished=self.counts.finished - self.before,
            memory_mb={name: round(used, 1) for name, used in self._memory()},
            database_mb=self.server.number("SELECT pg_database_size(current_database())") / 1e6,
            dead=self.server.number(
                "SELECT max(n_dead_tup::float / (n_live_tup + n_dead_tup)) FROM pg_stat_user_tables"
                " WHERE n_live_tup + n_dead_tup > 10000"
            ),
        )

    def _memory(self) -> Iterator[tuple[str, float]]:
        """MB that belong to each process of the system and its children alone."""
        for name, child in self.system.children.items():
            used = 0.0
            with suppress(psutil.NoSuchProcess):
                for process in (leader := psutil.Process(child.pid), *leader.children(recursive=True)):
                    with suppress(psutil.NoSuchProcess):
                        used += process.memory_full_info().uss / 1e6
            yield name, used

    def deadlocks(self) -> int:
        return self._deadlocks() - self.deadlocks_before

    def _deadlocks(self) -> int:
        return int(self.server.number("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"))

    def errors(self) -> list[str]:
        """Lines of the logs that tell of an error."""
        logs = sorted((Path(self.system.folder) / "logs").glob("*.log"))
        return [
            f"{log.name}: {line.strip()[:300]}"
            for log in logs
            for line in log.read_text(errors="replace").splitlines()
            if ERROR.search(line)
        ]


def full_rate(campaign: Campaign, counts: Counts, jobs: int) -> float:
    """Jobs in a second with as many tasks as there is room for; the first round warms up."""
    campaign.tasks, campaign.files = 10, jobs // 10
    laps = [campaign.round(counts) for _ in range(2)]
    return laps[-1].operations / laps[-1].seconds


def load(campaign: Campaign, watch: Watch, rate: float, seconds: float) -> Iterator[Reading]:
    """Submit tasks so that jobs come at this rate, for so long: a reading now and then."""
    began, made, number = time.monotonic(), 0, 0
    due = seconds / READINGS
    while (now := time.monotonic() - began) < seconds:
        if (n := round(rate * (now + TASK_S)) - made) >= rate * TASK_S:
            name = f"steady.{number}"
            campaign.dataset(f"{name}.in", n)
            campaign.submit(name)
            made, number = made + n, number + 1
        if now >= due:
            due += seconds / READINGS
            yield watch.read()
        time.sleep(0.05)


def told(readings: Sequence[Reading], rate: float) -> dict[str, object]:
    """What the readings say, after the first third, in which tables and caches fill: later half beside earlier half."""
    settled = readings[len(readings) // 3 :]
    early, late = settled[: len(settled) // 2 + 1], settled[len(settled) // 2 :]

    def per_s(part: Sequence[Reading]) -> float:
        return (part[-1].finished - part[0].finished) / (part[-1].at_s - part[0].at_s)

    def bytes_per_job(part: Sequence[Reading]) -> float:
        return 1e6 * (part[-1].database_mb - part[0].database_mb) / max(1, part[-1].finished - part[0].finished)

    def memory(part: Sequence[Reading], name: str) -> float:
        return statistics.median(reading.memory_mb[name] for reading in part)

    return {
        "wanted_per_s": round(SHARE * rate, 1),
        "jobs_per_s": [round(per_s(early), 1), round(per_s(late), 1)],
        "bytes_per_job": [round(bytes_per_job(early)), round(bytes_per_job(late))],
        "memory_mb": {name: [round(memory(part, name), 1) for part in (early, late)] for name in readings[0].memory_mb},
        "dead": round(max(reading.dead for reading in settled), 3),
        "finished": readings[-1].finished,
    }


def main(words: Sequence[str]) -> int:
    """Run, and tell; nothing is judged here."""
    parser = argparse.ArgumentParser(prog="python -m tests.steady.run", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--jobs", type=int, default=3000, help="jobs of the round that measures the full rate")
    options = parser.parse_args(words)
    with bench() as server, system_on(server, "steady") as system:
        queues = some_queues(server)
        campaign = Campaign(server, system, 0, 0)
        with pilots_at(system.url, dealt(queues), PILOTS, Slot()) as counts:
            rate = full_rate(campaign, counts, options.jobs)
            watch, readings = Watch(server, system, counts), []
            for reading in load(campaign, watch, SHARE * rate, 60 * options.minutes):
                readings.append(reading)
                print(json.dumps(asdict(reading)), flush=True)
            seen = {**told(readings, rate), "deadlocks": watch.deadlocks(), "refused": counts.refused[:5]}
        print(json.dumps({**seen, "errors": watch.errors()[:5]}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
