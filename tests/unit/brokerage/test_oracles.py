"""Each policy against a second one in plain Python, on random grids: the same verdicts, sentences, choice and weights.

A usual run compares a few hundred grids per policy; `pytest tests/unit/brokerage/test_oracles.py --hypothesis-profile thorough`
compares 10,000. Software, which has tests of its own, and options are not among the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brokerage.policies.analysis import Analysis
from brokerage.policies.generic import Generic
from brokerage.policies.nucleus import Nucleus
from brokerage.policies.production import Production
from brokerage.rules.decision.declare import Policy
from brokerage.rules.decision.pipeline import PolicyDecision, decide, evidence, skip_of, skips
from brokerage.rules.facts.ask import Ask
from brokerage.rules.facts.columns import Columns
from brokerage.rules.facts.snapshot import Nuclei, Queues
from tests.unit.brokerage import oracle, oracle_analysis, oracle_nucleus, oracle_production, sentences
from tests.unit.brokerage.grids import ASKS, CONFIG, GRIDS, ROWS, ask
from tests.unit.brokerage.oracle import merged

Rows = list[dict[str, Any]]
Values = Mapping[str, Sequence[Any]]

many = settings(max_examples=GRIDS, deadline=None, suppress_health_check=list(HealthCheck))


def tasks(values: Values) -> st.SearchStrategy[Ask]:
    return st.fixed_dictionaries({name: st.sampled_from(found) for name, found in values.items()}).map(lambda given: ask(**given))


def grids(values: Values, most: int, suffixes: Sequence[str] = ("",)) -> st.SearchStrategy[Rows]:
    """Up to `most` candidates; rows are drawn as one number for each, which is far quicker than each value by itself."""
    row = st.tuples(st.randoms(use_true_random=False), st.sampled_from(suffixes))
    return st.lists(row, max_size=most).map(
        lambda drawn: [
            {"name": f"Q{i}{suffix}"} | {column: dice.choice(found) for column, found in values.items()}
            for i, (dice, suffix) in enumerate(drawn)
        ]
    )


def compare(
    policy: Policy,
    asked: Ask,
    table: Columns,
    config: Mapping[str, Any],
    rows: Rows,
    failed: Mapping[str, list[str]],
    said: Mapping[sentences.Named, sentences.Sentence],
) -> PolicyDecision:
    """Decide by columns, and hold each verdict against the oracle's, and the sentence of each skip against its own."""
    decision = decide(policy, asked, table, config, "1")
    matrix, found, named = decision.failed(), evidence(policy, asked, table, config), sentences.names(policy)
    told = skips(decision, policy, asked, table, config)
    by_name, seen = {row["name"]: row for row in rows}, merged(asked)
    for name, row in table.index.items():
        failing = np.flatnonzero(matrix[:, row]).tolist()
        labels = [named[i][0] for i in failing if named[i][0] != "low_weight"]
        assert labels == failed.get(name, [])
        for i in failing:
            reason = skip_of(found[i], row).reason
            if named[i][0] != "low_weight":
                assert sentences.alike(reason, said[named[i]](seen, by_name[name])), (named[i], reason)
        if failing:
            assert told[name].criterion == f"-{named[failing[0]][0]}"
    assert told.keys() == table.index.keys() - {choice.name for choice in decision.chosen}
    assert (decision.outcome == "assign") == bool(decision.chosen)
    return decision


def without_the_lighter(failed: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {name: labels for name, labels in failed.items() if labels != ["low_weight"]}


@many
@given(tasks(oracle_production.TASKS), grids(oracle_production.MANY, 16, ("", "", "", "_Test")))
def test_production(asked: Ask, rows: Rows) -> None:
    chosen, failed = oracle_production.decide(asked, rows)
    table = Queues.from_rows(rows)
    decision = compare(Production, asked, table, CONFIG, rows, without_the_lighter(failed), sentences.PRODUCTION)
    assert [choice.name for choice in decision.chosen] == [name for name, _ in chosen]
    for choice, (_, factors) in zip(decision.chosen, chosen, strict=True):
        assert choice.factors == pytest.approx(tuple(factors))


@many
@given(tasks(oracle_analysis.TASKS), grids(oracle_analysis.MANY, 24))
def test_analysis(asked: Ask, rows: Rows) -> None:
    caps = oracle_analysis.CAPS
    chosen, failed = oracle_analysis.decide(asked, rows, caps)
    table = Queues.from_rows(rows)
    decision = compare(Analysis, asked, table, CONFIG | caps, rows, without_the_lighter(failed), sentences.ANALYSIS)
    assert [choice.name for choice in decision.chosen] == [name for name, _ in chosen]
    assert [choice.weight for choice in decision.chosen] == pytest.approx([weight for _, weight in chosen])


@many
@given(tasks(ASKS), grids(ROWS, 12), st.integers(1, 5))
def test_generic(asked: Ask, rows: Rows, best: int) -> None:
    chosen, failed = oracle.decide(asked, rows, best)
    table, config = Queues.from_rows(rows), CONFIG | {"BEST_GENERIC": best}
    decision = compare(Generic, asked, table, config, rows, without_the_lighter(failed), sentences.GENERIC)
    assert [choice.name for choice in decision.chosen] == [name for name, _ in chosen]
    assert [choice.weight for choice in decision.chosen] == pytest.approx([weight for _, weight in chosen])


@many
@given(tasks(oracle_nucleus.TASKS), grids(oracle_nucleus.MANY, 9))
def test_nucleus(asked: Ask, rows: Rows) -> None:
    failed = oracle_nucleus.failing_all(asked, rows)
    decision = compare(Nucleus, asked, Nuclei.from_rows(rows), CONFIG, rows, failed, sentences.NUCLEUS)
    assert (decision.outcome == "assign") == any(not labels for labels in failed.values())
    for choice in decision.chosen:
        row = next(row for row in rows if row["name"] == choice.name)
        assert choice.weight == pytest.approx(oracle_nucleus.weight(asked, row))
