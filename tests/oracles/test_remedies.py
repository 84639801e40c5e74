"""A value that is told as enough is enough: put where it is told to be put, the criterion passes; over every policy."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from brokerage.policies.analysis import Analysis
from brokerage.policies.generic import Generic
from brokerage.policies.nucleus import Nucleus
from brokerage.policies.production import Production
from brokerage.rules.decision.declare import Policy
from brokerage.rules.decision.pipeline import decide
from brokerage.rules.decision.record import decode, encode
from brokerage.rules.explain.remedies import Remedy
from brokerage.rules.explain.why_not import why_not
from brokerage.rules.facts.ask import Ask
from brokerage.rules.facts.columns import Columns
from brokerage.rules.facts.snapshot import Nuclei, Queues
from tests.oracles import analysis, nucleus, production
from tests.unit.brokerage.grids import ASKS, CONFIG, ROWS, Values, random_row, random_task

SLOTS = {"-lowmemory", "-highmemory", "-shortwalltime", "-longwalltime"}
CASES: tuple[tuple[Policy, type[Columns], Values, Values, set[str]], ...] = (
    (Generic, Queues, ASKS, ROWS, SLOTS | {"-disk", "-cpucore"}),
    (
        Production,
        Queues,
        production.TASKS,
        production.MANY,
        SLOTS | {"-io", "-link_unusable", "-cap_activated", "-cap_queued", "-inactive", "-max_cpucore", "-scout_walltime"},
    ),
    (Analysis, Queues, analysis.TASKS, analysis.MANY, SLOTS | {"-badsite", "-user_limit", "-max_cpucore", "-min_walltime"}),
    (Nucleus, Nuclei, nucleus.TASKS, nucleus.MANY, {"-insize", "-transfer_backlog"}),
)
"""Policy, its table, values of tasks and rows, and criteria for which a value must have been told."""


def still_fails(
    policy: Policy, ask: Ask, table: type[Columns], rows: list[dict[str, Any]], name: str, criterion: int, remedy: Remedy
) -> bool:
    """Whether the candidate fails the criterion with the value where it was told to be."""
    config: Mapping[str, Any] = CONFIG
    if remedy.where == "configuration":
        config = {**CONFIG, remedy.name: remedy.enough}
    else:
        rows = [row | {remedy.name: float(remedy.enough)} if row["name"] == name else row for row in rows]
        kinds = table.kinds()
        rows = [{k: int(v) if kinds[k][0] == "int" and v is not None else v for k, v in row.items()} for row in rows]
    columns = table.from_rows(rows)
    return bool(decide(policy, ask, columns, config, "1").failed()[criterion, columns.index[name]])


@pytest.mark.parametrize(("policy", "table", "tasks", "values", "wanted"), CASES, ids=lambda case: getattr(case, "name", ""))
def test_the_told_value_is_enough(policy: Policy, table: type[Columns], tasks: Values, values: Values, wanted: set[str]) -> None:
    told: set[str] = set()
    for seed in range(50):
        dice = Random(seed)
        ask = random_task(dice, tasks)
        rows = [{"name": f"Q{i:02}", **random_row(dice, values)} for i in range(4)]
        columns = table.from_rows(rows)
        record = decode(encode(decide(policy, ask, columns, CONFIG, "1"), policy))
        for name in columns.index:
            for i, check in enumerate(why_not(record, policy, ask, columns, CONFIG, name).checks):
                for remedy in check.depends_on:
                    if remedy.enough is not None:
                        told.add(check.criterion)
                        assert not still_fails(policy, ask, table, rows, name, i, remedy), (seed, name, check, remedy)
    assert wanted <= told, wanted - told
