"""`manage.py states` and `criteria`: the reference that is made from the code instead of being copied from it."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from broker_site.roof.management.commands.states import MACHINES
from brokerage.rules.decision.declare import POLICIES
from brokerage.states import JOB
from tests.arch.source import read


def _printed(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_a_machine_is_printed_with_every_move_and_its_drawing() -> None:
    page = _printed("states", "job")
    assert "| send | activated | sent |" in page
    assert "| insert | (new) | pending, defined, waiting, assigned, activated |" in page
    assert "Final: finished, failed, closed, cancelled." in page
    assert JOB.drawing() in page
    moves = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| event")]
    told = sum(len(line.split(" | ")[1].split(", ")) * len(line.rstrip(" |").split(" | ")[2].split(", ")) for line in moves)
    assert told == len(JOB.transitions)


def test_without_a_name_all_machines_are_printed() -> None:
    page = _printed("states")
    assert [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")] == list(MACHINES)
    assert len(MACHINES) == 9


def test_a_machine_that_is_none_is_refused_with_the_names_of_those_that_are() -> None:
    with pytest.raises(CommandError, match="input_dataset"):
        _printed("states", "jobs")


def test_every_criterion_and_weight_of_a_policy_is_printed_in_its_order() -> None:
    policy = POLICIES["production"]
    page = _printed("criteria", "production")
    labels = [line.split(" | ")[0].removeprefix("| -") for line in page.splitlines() if line.startswith("| -")]
    assert labels == [criterion.label for criterion in policy.criteria]
    for weight in policy.weights:
        assert f"| {weight.name} | " in page
    assert "BEST_PRODUCTION" in page


def test_the_page_on_time_outs_has_what_is_printed() -> None:
    page = read("docs/reference/timeouts.md").partition("<!-- begin timeouts -->")[2].partition("<!-- end timeouts -->")[0]
    printed = _printed("timeouts")
    assert page.strip() == printed.strip()
    assert "| sent | all |  | 30min | `job_timeout.TIMEOUT_sent` |" in printed


def test_without_a_name_all_policies_are_printed() -> None:
    page = _printed("criteria")
    assert [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")] == list(POLICIES)
