"""Every conformance case whose family is due passes: our own, and those of the specification where they are at hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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


def test_who_is_done_first_takes_no_database_from_others_that_try_cases() -> None:
    """Two at once, as two workers of a test run: the one that began first ends first."""
    case = json.dumps({"what": "inserted", "given": {"parallel_inserts": 4, "distinct_requirements": 2}})
    first, second = matchers(), matchers()
    assert [answer(each, case) for each in (first, second)] == [{"queues": 2, "jobs": 4}] * 2
    first.communicate(timeout=60)
    assert answer(second, case) == {"queues": 2, "jobs": 4}
    second.communicate(timeout=60)
    assert (first.returncode, second.returncode) == (0, 0)


def matchers() -> subprocess.Popen[str]:
    """A process that tries cases on a database of its own."""
    command = [sys.executable, "-m", "broker_site.roof.conformance.matchers"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen[str], case: str) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{case}\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline() or '{"answer": "none: it has ended"}')["answer"]
