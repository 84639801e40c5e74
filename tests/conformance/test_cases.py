"""Every conformance case whose family is due passes: our own, and those of the specification where they are at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker_site.roof.conformance.cases import Case, read_cases
from broker_site.roof.conformance.registry import FAMILIES, Values
from broker_site.roof.conformance.runner import failure, not_yet

HERE = Path(__file__).resolve().parent
OWN = sorted((HERE / "cases").glob("*.json"))
SHARED = Path(os.environ.get("GRIDBROKER_CASES") or HERE.parents[2] / "shared" / "spec" / "cases")


def due(path: Path) -> list[Case]:
    left_out = not_yet()
    return [case for case in read_cases(path) if case.family not in left_out]


@pytest.mark.parametrize("path", OWN, ids=[path.stem for path in OWN])
def test_our_own_cases(path: Path) -> None:
    failing = {case.id: why for case in read_cases(path) if (why := failure(case))}
    assert not failing


@pytest.mark.skipif(
    not SHARED.is_dir(), reason=f"the cases of the specification are not at {SHARED}; GRIDBROKER_CASES names their folder"
)
@pytest.mark.parametrize("name", ["panda.json", "matching.json"])
def test_the_cases_of_the_specification(name: str) -> None:
    failing = {case.id: why for case in due(SHARED / name) if (why := failure(case))}
    assert not failing


BROKERAGE = [
    "analysis_filter",
    "analysis_locality",
    "analysis_per_user_limit",
    "analysis_throttle",
    "analysis_weight",
    "disk",
    "final_filters",
    "hardware",
    "io_cut",
    "ip_connectivity",
    "many_assigned",
    "memory",
    "production_weight",
    "resource_type",
    "running",
    "t1_weight",
    "task_brokerage",
    "transferring",
    "walltime",
    "zero_share",
]


@pytest.mark.parametrize("family", BROKERAGE)
def test_what_is_not_given_is_the_default_of_the_function(family: str) -> None:
    """A case may give null for any key: the function then answers by its own default."""
    for mapped in FAMILIES[family]:
        nothing = dict.fromkeys(mapped.allowed)
        answer = mapped.function(Values(nothing))
        assert answer.keys() == mapped.answered
