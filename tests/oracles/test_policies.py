"""Each policy against a second one in plain Python, on random grids: the same verdicts, sentences, choice and weights.

A usual run compares a few hundred grids per policy, `make soak` 10,000. Software, which has tests of its own, and options are
not among the values.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from tests.oracles import analysis, generic, nucleus, production, sentences
from tests.oracles.generic import merged
from tests.unit.brokerage.grids import ASKS, CONFIG, ROWS, random_grids, random_tasks

Rows = list[dict[str, Any]]

THOROUGH = settings.get_current_profile_name() == "thorough"
GRIDS = 10_000 if THOROUGH else 300
"""How many random grids the oracles compare; the profile is chosen with `--hypothesis-profile thorough`."""

pytestmark = [pytest.mark.long] if THOROUGH else []

many = settings(max_examples=GRIDS, suppress_health_check=list(HealthCheck))


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
                expected = said[named[i]](seen, by_name[name])
                if named[i][0] == "nonpreassigned" and policy is not Nucleus:
                    expected += sentences.word_of_an_unknown_site(seen, rows)
                assert sentences.alike(reason, expected), (named[i], reason)
        if failing:
            assert told[name].criterion == f"-{named[failing[0]][0]}"
    assert told.keys() == table.index.keys() - {choice.name for choice in decision.chosen}
    assert (decision.outcome == "assign") == bool(decision.chosen)
    return decision


def without_the_lighter(failed: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {name: labels for name, labels in failed.items() if labels != ["low_weight"]}


@many
@given(random_tasks(production.TASKS), random_grids(production.MANY, 16, ("", "", "", "_Test")))
def test_production(asked: Ask, rows: Rows) -> None:
    chosen, failed = production.decide(asked, rows)
    table = Queues.from_rows(rows)
    decision = compare(Production, asked, table, CONFIG, rows, without_the_lighter(failed), sentences.PRODUCTION)
    assert [choice.name for choice in decision.chosen] == [name for name, _ in chosen]
    for choice, (_, factors) in zip(decision.chosen, chosen, strict=True):
        assert choice.factors == pytest.approx(tuple(factors))


@many
@given(random_tasks(analysis.TASKS), random_grids(analysis.MANY, 24))
def test_analysis(asked: Ask, rows: Rows) -> None:
    caps = analysis.CAPS
    chosen, failed = analysis.decide(asked, rows, caps)
    table = Queues.from_rows(rows)
    decision = compare(Analysis, asked, table, CONFIG | caps, rows, without_the_lighter(failed), sentences.ANALYSIS)
    assert [choice.name for choice in decision.chosen] == [name for name, _ in chosen]
    assert [choice.weight for choice in decision.chosen] == pytest.approx([weight for _, weight in chosen])


@many
@given(random_tasks(ASKS), random_grids(ROWS, 12), st.integers(1, 5))
def test_generic(asked: Ask, rows: Rows, best: int) -> None:
    chosen, failed = generic.decide(asked, rows, best)
    table, config = Queues.from_rows(rows), CONFIG | {"BEST_GENERIC": best}
    decision = compare(Generic, asked, table, config, rows, without_the_lighter(failed), sentences.GENERIC)
    assert [choice.name for choice in decision.chosen] == [name for name, _ in chosen]
    assert [choice.weight for choice in decision.chosen] == pytest.approx([weight for _, weight in chosen])


@many
@given(random_tasks(nucleus.TASKS), random_grids(nucleus.MANY, 9))
def test_nucleus(asked: Ask, rows: Rows) -> None:
    failed = nucleus.failing_all(asked, rows)
    decision = compare(Nucleus, asked, Nuclei.from_rows(rows), CONFIG, rows, failed, sentences.NUCLEUS)
    assert (decision.outcome == "assign") == any(not labels for labels in failed.values())
    for choice in decision.chosen:
        row = next(row for row in rows if row["name"] == choice.name)
        assert choice.weight == pytest.approx(nucleus.weight(asked, row))
