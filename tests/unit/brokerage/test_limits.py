"""Each criterion where it alone decides: at its limit, just inside and just outside; and that none is missing from the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from brokerage.policies.analysis import Analysis
from brokerage.policies.generic import Generic
from brokerage.policies.nucleus import Nucleus
from brokerage.policies.production import Production
from brokerage.rules.decision.declare import FILTERS, POLICIES, Policy
from brokerage.rules.decision.pipeline import decide, skips
from brokerage.rules.facts.ask import Ask
from brokerage.rules.facts.columns import Columns
from brokerage.rules.facts.snapshot import Nuclei, Queues
from tests.oracles.sentences import names
from tests.unit.brokerage import limits
from tests.unit.brokerage.grids import CONFIG, ask

TABLES: dict[str, tuple[Policy, Mapping[limits.Named, limits.Case]]] = {
    "production": (Production, limits.PRODUCTION),
    "analysis": (Analysis, limits.ANALYSIS),
    "generic": (Generic, limits.GENERIC),
    "nucleus": (Nucleus, limits.NUCLEUS),
}

CANNOT_BE = {("analysis", "no_weight"), ("generic", "no_weight")}
"""Their weights are made of whole numbers and divide by 1 at least; `test_weights` has a weight that cannot be computed."""

GOOD = {"requests_3h": 9, "space_gb": 5000}
TASKS: dict[str, dict[str, Any]] = {
    "production": {"cpu_time": 1, "events": 1, "nucleus": "N"},
    "analysis": {"cpu_time": 1, "events": 1, "user": "ann"},
    "generic": {},
    "nucleus": {},
}
OF_THE_TASK = {"disk_io_task": "disk_io", "cloud_task": "cloud"}
"""Values of a task that are called like a column."""
OF_THE_QUEUE = {"queue_site": "site"}
"""Columns that are called like a value of a task."""

ASKED = {field.name for field in fields(Ask)} | {"events", "gb", "files"}


def every() -> Iterator[Any]:
    for policy, (_, table) in TABLES.items():
        for (label, number), case in table.items():
            for i, (said, passes) in enumerate(case.cases()):
                yield pytest.param(policy, (label, number), case, said, passes, id=f"{policy} {label} {number} {i}")


@pytest.mark.parametrize(("policy_name", "criterion", "case", "said", "passes"), list(every()))
def test_it_alone_decides(
    policy_name: str, criterion: limits.Named, case: limits.Case, said: Mapping[str, Any], passes: bool
) -> None:
    policy = TABLES[policy_name][0]
    too = said.get("skips_too")
    task, table, config = _split(policy_name, case, {name: value for name, value in said.items() if name != "skips_too"})
    decision = decide(policy, task, table, config, "1")
    here = next(row for name, row in table.index.items() if name != "NEAR")
    failing = [names(policy)[i] for i in np.flatnonzero(decision.failed()[:, here])]
    told = [found for found in failing if found[0] != too]
    assert told == ([] if passes else [criterion])
    assert (table.name[here] in {choice.name for choice in decision.chosen}) == passes
    reasons = skips(decision, policy, task, table, config)
    assert passes or reasons[table.name[here].item()].criterion == f"-{criterion[0]}"


def _split(policy: str, case: limits.Case, said: Mapping[str, Any]) -> tuple[Ask, Columns, dict[str, Any]]:
    """What is said of the candidate, the task and the configuration."""
    kind: type[Columns] = Nuclei if policy == "nucleus" else Queues
    good = {"free_gb": 9000} if policy == "nucleus" else GOOD
    columns, asked, config = {}, dict(TASKS[policy]), dict(CONFIG)
    for name, value in said.items():
        if name in OF_THE_TASK:
            asked[OF_THE_TASK[name]] = value
        elif name in OF_THE_QUEUE:
            columns[OF_THE_QUEUE[name]] = value
        elif name in kind.kinds() and not (name == "site" and policy != "nucleus"):
            columns[name] = value
        elif name in ASKED:
            asked[name] = value
        else:
            config[name] = value
    rows = [{"name": "Q", **good, **columns}]
    rows += [{"name": "NEAR", **good, **case.near}] if case.near is not None else []
    return ask(**asked), kind.from_rows(rows), config


@pytest.mark.parametrize("policy", TABLES)
def test_no_criterion_of_a_policy_is_missing(policy: str) -> None:
    there = {(policy, label) for label, _ in TABLES[policy][1]}
    assert set(TABLES[policy][1]) == {named for named in names(TABLES[policy][0]) if (policy, named[0]) not in CANNOT_BE}
    assert not there & CANNOT_BE


def test_every_policy_and_every_filter_of_ours_is_in_the_tables() -> None:
    ours = {name: policy for name, policy in POLICIES.items() if policy.__module__.startswith("brokerage.policies")}
    assert ours == {name: policy for name, (policy, _) in TABLES.items()}
    used = {rule.name for policy in ours.values() for rule in policy.rules}
    declared = {name for name, rule in FILTERS.items() if rule.judge.__module__.startswith("brokerage.filters")}
    assert declared == used, "a filter that no policy uses is judged by nobody"
