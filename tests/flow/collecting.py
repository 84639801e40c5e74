"""Steps of tests in which outputs travel: a grid with a nucleus, and the mover's part done through the ledger."""

from __future__ import annotations

from typing import Any

from brokerage.ledger.transfers.ends import end_unmet, finish
from brokerage.ledger.transfers.moves import TransferMove
from brokerage.models import ComputingQueue, Job, Site, StorageEndpoint, Transfer
from brokerage.queries.invariants import look
from tests.builders import grid, submitted
from tests.flow.steps import run_agents
from workqueues.catalogue import DatasetKey, catalogue
from workqueues.models import Task

PRODUCTION = {"prodSourceLabel": "managed"}


def nucleus_grid() -> ComputingQueue:
    """The queue ALPHA; outputs are collected at SITE_BETA."""
    alpha, _ = grid("ALPHA", "BETA")
    Site.objects.filter(name="SITE_BETA").update(nucleus=True)
    StorageEndpoint.objects.filter(name="BETA_DISK").update(free_gb=50_000)
    return alpha


def faults() -> list[str]:
    return [f"{found.invariant.name}: {example}" for found in look() for example in found.examples]


def running(params: dict[str, Any], at: str = "ALPHA") -> Task:
    """A task whose jobs are all at this queue: the others went offline after the nucleus was chosen."""
    task = submitted(params)
    run_agents(2, ("refine", "feed", "assign"))
    ComputingQueue.objects.exclude(name=at).update(status="offline")
    run_agents()
    task.refresh_from_db()
    assert task.status == "running", task.error_dialog
    assert task.nucleus == "SITE_BETA"
    return task


def bring(**which: Any) -> int:
    """Such open transfers are done: how many."""
    moves = [TransferMove(id_) for id_ in Transfer.objects.filter(ended_at=None, **which).values_list("id", flat=True)]
    return len(finish(moves, "agent:transfer"))


def lose(**which: Any) -> int:
    """Such open transfers have failed: how many."""
    open_ones = Transfer.objects.filter(ended_at=None, **which).values_list("id", flat=True)
    return len(end_unmet([TransferMove(id_, "no space", reason="quota") for id_ in open_ones], "failed", "agent:transfer"))


def visible(name: str) -> int:
    """Files that a reader of the catalogue finds in a dataset."""
    return len(catalogue().files(DatasetKey("demo", name)))


def statuses() -> set[str]:
    return set(Job.objects.values_list("status", flat=True))
