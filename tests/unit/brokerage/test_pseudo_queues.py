"""Unified queues become pseudo-queues of the classes that fit their slots, with their part of memory and disk."""

from __future__ import annotations

from typing import Any

import pytest

from brokerage.policies.production import Production
from brokerage.rules.decision.pipeline import decide
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.grid.pseudo_queues import expanded
from tests.unit.brokerage.grids import CONFIG, ask

EIGHT = {"name": "ALPHA", "corecount": 8, "maxrss": 32000, "minrss": 800, "maxwdir": 80000, "site": "A"}


def pseudo(row: dict[str, Any], capability: str = "ucore") -> dict[str, tuple[int, float, float]]:
    return {made["name"]: (made["corecount"], made["minrss"], made["maxrss"]) for made in expanded([(row, capability)])}


def test_a_slot_of_eight_cores_takes_all_classes() -> None:
    assert pseudo(EIGHT) == {
        "ALPHA/SCORE": (1, 800, 2000),
        "ALPHA/SCORE_HIMEM": (1, 2001, 4000),
        "ALPHA/MCORE": (8, 800, 16000),
        "ALPHA/MCORE_HIMEM": (8, 16001, 32000),
    }


@pytest.mark.parametrize("cores", [None, 0, 1])
def test_a_slot_of_one_core_takes_no_many_core_jobs(cores: int | None) -> None:
    row = {"name": "ALPHA", "corecount": cores, "maxrss": 3000}
    assert pseudo(row) == {"ALPHA/SCORE": (1, 0, 2000), "ALPHA/SCORE_HIMEM": (1, 2001, 3000)}


def test_a_queue_without_limit_of_memory_leaves_the_limits_of_the_classes() -> None:
    assert pseudo({"name": "ALPHA", "corecount": 1}) == {"ALPHA/SCORE": (1, 0, 2000), "ALPHA/SCORE_HIMEM": (1, 2001, 0)}


def test_other_queues_stay_as_they_are() -> None:
    assert list(expanded([(EIGHT, "")])) == [EIGHT]


def test_a_core_keeps_its_scratch_disk_and_a_pseudo_queue_its_unified_name() -> None:
    made = {row["name"]: row for row in expanded([(EIGHT, "ucore")])}
    assert {name: row["maxwdir"] / row["corecount"] for name, row in made.items()} == dict.fromkeys(made, 10000)
    assert {row["unified_name"] for row in made.values()} == {"ALPHA"}


@pytest.mark.parametrize(
    ("need", "taken"),
    [
        ({"core_count": 1, "ram_count": 2000}, ["ALPHA/SCORE"]),
        ({"core_count": 1, "ram_count": 2500}, ["ALPHA/SCORE_HIMEM"]),
        ({"core_count": 8, "ram_count": 2000}, ["ALPHA/MCORE"]),
        ({"core_count": 8, "ram_count": 3000}, ["ALPHA/MCORE_HIMEM"]),
        ({"core_count": 8, "ram_count": 3000, "site": "ALPHA"}, ["ALPHA/MCORE_HIMEM"]),
        ({"core_count": 8, "ram_count": 9000}, []),
    ],
)
def test_a_task_goes_to_the_pseudo_queue_of_its_needs(need: dict[str, Any], taken: list[str]) -> None:
    table = Queues.from_rows({**row, "requests_3h": 1, "space_gb": 500} for row in expanded([(EIGHT, "ucore")]))
    task = ask(**need, ram_unit="MBPerCore", cpu_time=1, events=1)
    assert [choice.name for choice in decide(Production, task, table, CONFIG, "1").chosen] == taken


def test_the_ten_best_are_ten_queues_and_not_parts_of_three() -> None:
    rows = [{"requests_3h": 9, "space_gb": 5000, **EIGHT, "name": f"Q{i:02}", "running": i, "defined": 1} for i in range(12)]
    table = Queues.from_rows(expanded((row, "ucore") for row in rows))
    decision = decide(Production, ask(cpu_time=1, events=1, core_count=0, ram_count=0), table, CONFIG, "1")
    assert [table.unified_name[choice.row] for choice in decision.chosen] == [f"Q{i:02}" for i in range(11, 1, -1)]
    assert {choice.name.partition("/")[2] for choice in decision.chosen} == {"MCORE"}, "the first by name of equal ones"
