"""How a benchmark measures: two legs that alternate, warm-up, medians, and what else the machine did meanwhile.

A leg does a number of operations and says how long that took and how much CPU time it cost. Only ratios of legs of one run carry
over to another machine; CPU time per operation is the second figure, which other people's work disturbs least.
"""

from __future__ import annotations

import os
import statistics
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psutil

ROUNDS, WARM_UP = 7, 1

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Lap:
    """One leg of one round. CPU seconds: of the clients, and of the server (None where it is not ours to watch)."""

    operations: int
    seconds: float
    client_cpu_s: float
    server_cpu_s: float | None = None
    foreign: float = 0.0
    """Share of the machine's CPU time that others used meanwhile."""

    @property
    def per_s(self) -> float:
        """Operations in a second."""
        return self.operations / self.seconds


def add_rounds(parser: ArgumentParser, rounds: int = ROUNDS) -> None:
    """The option of every benchmark that has two legs."""
    parser.add_argument("--rounds", type=int, default=rounds, metavar="R", help=f"turns of both legs (default {rounds})")


Leg = Callable[[], Lap]
Cpu = Callable[[], float | None]


def watched(work: Callable[[], Lap], server_cpu: Cpu) -> Lap:
    """Do the work and add to its lap what the server and others used of the machine."""
    server, machine, began = server_cpu(), _busy_s(), time.monotonic()
    lap = work()
    seconds, busy = time.monotonic() - began, _busy_s() - machine
    after = server_cpu()
    used = after - server if server is not None and after is not None else None
    # A share of it is the harness itself, between the clock and the lap; it is small.
    foreign = max(0.0, busy - lap.client_cpu_s - (used or 0.0)) / (seconds * (os.cpu_count() or 1))
    return Lap(lap.operations, lap.seconds, lap.client_cpu_s, used, foreign)


def _busy_s() -> float:
    used = psutil.cpu_times()
    return float(sum(used) - used.idle - getattr(used, "iowait", 0.0) - getattr(used, "guest", 0.0))


def compare(name: str, unit: str, ours: Leg, reference: Leg, sizes: Line, rounds: int, warm_up: int = WARM_UP) -> Iterator[Line]:
    """Run both legs in turn: a line for each round, the last line with the medians and the ratio ours / reference."""
    load = os.getloadavg()[0]
    for _ in range(warm_up):
        ours()
        reference()
    pairs: list[tuple[Lap, Lap]] = []
    for number in range(1, rounds + 1):
        pair = ours(), reference()
        pairs.append(pair)
        yield {"name": name, "round": number, "ours": round(pair[0].per_s, 1), "reference": round(pair[1].per_s, 1)}
    mine, bare = [p[0] for p in pairs], [p[1] for p in pairs]
    middle, other = statistics.median(x.per_s for x in mine), statistics.median(x.per_s for x in bare)
    yield {
        "name": name,
        "ours": round(middle, 1),
        "reference": round(other, 1),
        "ratio": round(middle / other, 3),
        "unit": unit,
        **sizes,
        "rounds": rounds,
        "operations": mine[0].operations,
        "ours_range": _range([x.per_s for x in mine]),
        "reference_range": _range([x.per_s for x in bare]),
        "ratio_range": _range([a.per_s / b.per_s for a, b in pairs], 3),
        "cpu_us": {"ours": _cpu_us(mine), "reference": _cpu_us(bare)},
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
        "foreign_cpu": round(statistics.median(x.foreign for pair in pairs for x in pair), 2),
    }


def _range(values: list[float], digits: int = 1) -> list[float]:
    return [round(min(values), digits), round(max(values), digits)]


def _cpu_us(laps: list[Lap]) -> Line:
    """Median CPU time of one operation, microseconds: in the clients and in the server."""
    clients = statistics.median(x.client_cpu_s / x.operations for x in laps)
    servers = [x.server_cpu_s / x.operations for x in laps if x.server_cpu_s is not None]
    return {"client": round(clients * 1e6), "server": round(statistics.median(servers) * 1e6) if servers else None}
