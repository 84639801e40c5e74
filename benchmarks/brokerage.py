"""One production decision over N queues, with every filter and weight and the first criterion of each queue.

Ours: the snapshot is loaded, and what depends on share and nucleus is joined in; each decision has a task and input of its own.
Every filter, late cut and weight of the production policy is asked for every queue, nothing is formatted or stored. What it does
not show: rules that a task switches off by what it is (scouts, merging, priority 800 and more, queues that it names, options that
are off) answer at once, as for most tasks; what the columns and the software of the queues give for equal wishes is made once per
share and nucleus and shared by the tasks that wish the same, as in a cycle.
The reference does what any such broker must: 35 bare NumPy comparisons over N rows, the first that fails for each row, one
weight, and the ten best. `bare_ms` is the comparisons and the weight alone. The scalar oracle of the tests, queue by queue in
plain Python, is timed beside them. Milliseconds of CPU time, which other work on the machine disturbs least; the legs take turns;
ratio = reference / ours.
"""

from __future__ import annotations

import os
import statistics
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

import numpy as np

import brokerage.config_keys  # noqa: F401 - declares the keys
from benchmarks.harness import Line, add_rounds
from broker_site.foundation.gdpconfig.values import Config
from brokerage.policies.production import Production
from brokerage.rules.decision.pipeline import decide
from brokerage.rules.decision.policy_config import gathered
from brokerage.rules.facts.ask import Ask, Chunk
from brokerage.rules.facts.snapshot import Queues
from tests.oracles import production

LAPS, LAP = 12, 10
"""A lap is so many decisions one after the other, as a cycle takes them; then it is the other legs' turn."""

COMPARISONS, BEST = 35, 10
TASKS, NUCLEI, SHARES = 60, 6, 3

GRID: dict[str, list[Any]] = {
    "type": ["unified"] * 19 + ["analysis"],
    "status": ["online"] * 24 + ["test"],
    "corecount": [8] * 9 + [1],
    "corepower": [0.0, 8.0, 10.0, 12.5],
    "maxrss": [0.0, 16000.0, 32000.0, 32000.0],
    "maxtime": [0, 172800, 345600],
    "maxwdir": [0, 80000, 160000],
    "maxdiskio": [0, 0, 4000],
    "transferringlimit": [0, 0, 3000],
    "fairsharepolicy": [""] * 18 + ["type=evgensimul:100%", "type=reco:0%,type=any:100%"],
    "wnconnectivity": ["full"] * 17 + ["http", "none", ""],
    "direct_access_lan": [False, True],
    "space_gb": [5000, 90000, 250, 120] + [3000] * 16,
    "read_wan_ok": [True] * 30 + [False],
    "requests_3h": [0] + [40] * 20,
    "idle_s": [30.0, 600.0, 9000.0],
    "disk_io": [0, 300, 900],
    "n_batch": [0, 0, 15, 90],
    "num_slots": [-1, -1, -1, 0, 60],
    "transferring": [0, 10, 400],
    "use_only_local_data": [False] * 30 + [True],
    "pledgedcpu": [0, 500, -1],
    "any_release": [False, True],
    "software": ['{"cvmfs": ["atlas"], "containers": ["any"], "cmtconfigs": ["x86_64-el9-gcc13-opt"]}', '{"cvmfs": ["atlas"]}'],
}
"""The values of the queues; about half of these queues can take a task."""

SHARE: dict[str, list[int]] = {
    "running": [0, 40, 200, 800],
    "activated": [0, 20, 60],
    "assigned": [0, 0, 30],
    "starting": [0, 5],
    "defined": [0, 0, 10],
}


def add_arguments(parser: ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--queues", type=int, default=1000, metavar="N", help="rows after pseudo-queues are expanded")
    add_rounds(parser, 9)


def run(options: Namespace) -> Iterator[Line]:
    """Time the legs in turn: a line for each round, then the result."""
    dice = Random(20261121)
    rows = [{"name": f"SITE{i // 4:03}_Q{i:04}", "site": f"SITE{i // 4:03}"} | _drawn(GRID, dice) for i in range(options.queues)]
    tasks = _tasks(rows, dice)
    config = gathered(Production, Config().component)
    legs: dict[str, Callable[[int], object]] = {
        "ours": lambda i: decide(Production, *tasks[i % TASKS](), config, str(i)),
        "reference": _floor(options.queues),
        "bare": _bare(options.queues),
    }
    laps: dict[str, list[float]] = {name: [] for name in legs}
    _round(legs)
    for number in range(1, options.rounds + 1):
        timed = _round(legs)
        for name, ms in timed.items():
            laps[name].append(ms)
        yield {"name": "brokerage", "round": number} | {name: round(ms, 3) for name, ms in timed.items()}
    middle = {name: statistics.median(found) for name, found in laps.items()}
    taken = [decide(Production, *task(), config, "0") for task in tasks]
    yield {
        "name": "brokerage",
        "ours": round(middle["ours"], 3),
        "reference": round(middle["reference"], 3),
        "ratio": round(statistics.median(r / o for r, o in zip(laps["reference"], laps["ours"], strict=True)), 3),
        "unit": "ms",
        "queues": options.queues,
        "criteria": len(Production.judged),
        "weights": len(Production.weights),
        "comparisons": COMPARISONS,
        "rounds": options.rounds,
        "decisions": LAPS * LAP,
        "bare_ms": round(middle["bare"], 3),
        "oracle_ms": round(_oracle(rows, dice), 1),
        "left": round(statistics.mean(float((decision.first < 0).sum() + _outweighed(decision)) for decision in taken)),
        "assigned": sum(decision.outcome == "assign" for decision in taken),
        "load": round(os.getloadavg()[0], 1),
    }


def _round(legs: dict[str, Callable[[int], object]]) -> dict[str, float]:
    """Milliseconds of one operation of each leg: that of the middle lap of a round."""
    took: dict[str, list[float]] = {name: [] for name in legs}
    for number in range(LAPS):
        for name, leg in legs.items():
            began = time.thread_time()
            for i in range(number * LAP, (number + 1) * LAP):
                leg(i)
            took[name].append((time.thread_time() - began) / LAP)
    return {name: statistics.median(seconds) * 1e3 for name, seconds in took.items()}


def _drawn(values: dict[str, list[Any]], dice: Random) -> dict[str, Any]:
    return {column: dice.choice(found) for column, found in values.items()}


def _outweighed(decision: Any) -> int:
    return int((decision.first == len(Production.criteria) - 1).sum())


def _tasks(rows: list[dict[str, Any]], dice: Random) -> list[Callable[[], tuple[Ask, Queues]]]:
    """Tasks of several shares and nuclei, each with the table as it sees it: its input is joined in when it is asked for."""
    base, count = Queues.from_rows(rows), len(rows)
    draw = np.random.default_rng(7)
    shares = [base.with_columns(**{c: draw.choice(values, count) for c, values in SHARE.items()}) for _ in range(SHARES)]
    views = [share.with_columns(**_nucleus(base, f"SITE{n:03}", draw)) for share in shares for n in range(NUCLEI)]
    made: list[Callable[[], tuple[Ask, Queues]]] = []
    for number in range(TASKS):
        gb = dice.choice([0.0, 2.0, 4.0])
        ask = _ask(number, dice, gb)
        # Input is at a few sites.
        missing = draw.choice([0] + [5] * 9 + [40] * 10, count) if gb else np.zeros(count, dtype=np.int64)
        there = {"missing_files": missing, "available_gb": np.where(missing == 0, gb, gb / 4)}
        made.append(partial(_as_seen, ask, views[number % len(views)], there))
    return made


def _as_seen(ask: Ask, view: Queues, there: dict[str, Any]) -> tuple[Ask, Queues]:
    return ask, view.with_columns(**there)


def _nucleus(base: Queues, site: str, draw: np.random.Generator) -> dict[str, Any]:
    count = len(base)
    return {
        "at_nucleus": base.site == site,
        "link_files": draw.choice([0, 20, 150, 290, 320], count),
        "nucleus_files": np.full(count, 4000, dtype=np.int64),
        "mbps": draw.choice([np.nan, 15.0, 80.0, 250.0], count),
        "closeness": draw.choice([np.nan, 2.0, 5.0, 9.0], count),
    }


def _ask(number: int, dice: Random, gb: float) -> Ask:
    return Ask(
        task_id=number,
        vo="atlas",
        prod_source_label="managed",
        processing_type=dice.choice(["simul", "reco", "pile"]),
        share="MC",
        priority=dice.choice([200, 500, 790]),
        nucleus="N",
        core_count=8,
        ram_count=1500 + number,
        ram_unit="MBPerCore",
        base_ram_count=500,
        cpu_time=200 + number,
        cpu_time_unit="HS06sPerEvent",
        out_disk_count=500,
        out_disk_unit="kBPerEvent",
        work_disk_count=1500,
        work_disk_unit="MB",
        io_intensity=dice.choice([100, 300]),
        disk_io=600,
        architecture="x86_64-el9-gcc13-opt",
        release="Athena-25.0",
        ip_connectivity=dice.choice([None, "http"]),
        chunk=Chunk(n_events=1000 + number, files=40 if gb else 0, gb=gb),
    )


def _floor(count: int) -> Callable[[int], object]:
    """35 comparisons, the first that fails, one weight, the ten best."""
    columns, limits, running, queued = _columns(count)
    failed = np.empty((COMPARISONS, count), dtype=np.bool_)

    def leg(_i: int) -> object:
        for row, (column, limit) in enumerate(zip(columns, limits, strict=True)):
            np.greater(column, limit, out=failed[row])
        first = np.where(failed.any(axis=0), failed.argmax(axis=0), -1)
        rows = np.flatnonzero(first < 0)
        weights = (running[rows] + 1) / (queued[rows] + 10)
        return first, rows[np.argsort(-weights, kind="stable")[:BEST]]

    return leg


def _bare(count: int) -> Callable[[int], object]:
    """35 comparisons and one weight."""
    columns, limits, running, queued = _columns(count)
    return lambda _i: ([column <= limit for column, limit in zip(columns, limits, strict=True)], (running + 1) / (queued + 10))


def _columns(count: int) -> tuple[list[Any], list[float], Any, Any]:
    """Columns and limits by which about half of the rows fail somewhere."""
    draw = np.random.default_rng(11)
    columns = [draw.random(count) for _ in range(COMPARISONS)]
    return columns, [0.98] * COMPARISONS, draw.integers(0, 800, count), draw.integers(0, 100, count)


def _oracle(rows: list[dict[str, Any]], dice: Random) -> float:
    """Milliseconds of one decision by the oracle of the tests."""
    kinds = Queues.kinds()
    whole = [{name: default for name, (_, default) in kinds.items()} | row | _drawn(SHARE, dice) for row in rows]
    for row in whole:
        row |= {"closeness": None, "mbps": dice.choice([None, 15.0, 250.0]), "num_slots": None}
    ask = _ask(0, dice, 2.0)
    began = time.thread_time()
    production.decide(ask, whole)
    return (time.thread_time() - began) * 1e3
