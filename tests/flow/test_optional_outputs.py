"""Which outputs a job may leave out is said of each output, not of the dataset that it goes to."""

from __future__ import annotations

from typing import Any

import pytest

from brokerage.models import ComputingQueue, JobResult
from brokerage.queries.invariants import check
from brokerage.queries.job_document import job_document
from brokerage.rules.dispatch.settlement import Report
from tests.builders import grid, parameters, submitted
from tests.flow.steps import end, good, run_agents, take
from workqueues.models import Dataset, File

pytestmark = pytest.mark.django_db(transaction=True)


def output(letter: str, **more: Any) -> dict[str, Any]:
    text = f"--out{letter}=o.{letter}.${{SN}}.root"
    return {"type": "template", "param_type": "output", "dataset": "o.OUT", "value": text, **more}


def job_of(*items: dict[str, Any]) -> ComputingQueue:
    """A grid with one job that writes these outputs to one dataset."""
    (queue,) = grid("ALPHA")
    submitted(parameters(nEvents=10, jobParameters=list(items), log=None))
    run_agents(2)
    return queue


def without(job_id: int, letter: str) -> Report:
    """A report of a job that did not write this output."""
    report = good(job_id)
    return Report("finished", [o for o in report.outputs if not o.lfn.startswith(f"o.{letter}.")])


@pytest.mark.parametrize("optional_first", [True, False])
def test_an_output_may_be_left_out_beside_one_that_must_be_there(optional_first: bool) -> None:
    items = [output("A", allowNoOutput=True), output("B")]
    queue = job_of(*(items if optional_first else items[::-1]))
    leased = take(queue)
    told = {o["lfn"][2]: o["optional"] for o in job_document(leased.job_id)["outputs"]}
    assert told == {"A": True, "B": False}
    assert end(leased, without(leased.job_id, "A")) == "finished"
    files = {f.lfn[2]: (f.status, f.no_output) for f in File.objects.filter(type="output")}
    assert files == {"A": ("finished", True), "B": ("finished", False)}
    assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []


@pytest.mark.parametrize("optional_first", [True, False])
def test_an_output_that_must_be_there_fails_the_job_whatever_is_said_of_its_neighbour(optional_first: bool) -> None:
    items = [output("A", allowNoOutput=True), output("B")]
    queue = job_of(*(items if optional_first else items[::-1]))
    leased = take(queue)
    assert end(leased, without(leased.job_id, "B")) == "failed"
    assert JobResult.objects.get(job_id=leased.job_id).error_code == "OUTPUT_MISSING"
    assert Dataset.objects.get(type="output").attributes == ""
