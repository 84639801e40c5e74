"""The invariants hold of whatever the system does, and `check_invariants` tells what does not."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import call_command

from brokerage.ledger.expiry import expire_leases
from brokerage.queries.invariants import INVARIANTS, look
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import BAD, end, run_agents, run_jobs
from tests.operator.taking import taken
from workqueues.ledger.commands import command
from workqueues.models import Task


def violated() -> dict[str, tuple[str, ...]]:
    """Name to examples, of every invariant that does not hold."""
    return {f.invariant.name: f.examples for f in look() if f.violations}


@pytest.mark.django_db
def test_they_hold_after_every_step_of_a_campaign_with_failures_lost_leases_and_commands() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 6)
    first = submitted(reading("first", "in.data", maxAttempt=2))
    submitted(parameters("second", nEvents=30, maxAttempt=2))
    broken = submitted(reading("broken", "in.none"))
    assert violated() == {}
    run_agents()
    assert violated() == {}
    taken(queue, lease_s=-1)
    end(taken(queue), BAD)
    expire_leases("agent:reap", 10)
    assert violated() == {}
    run_agents()
    run_jobs(queue)
    assert violated() == {}
    command(first.id, "finish", "user:ada", "soft finish")
    run_agents()
    assert violated() == {}
    run_jobs(queue, BAD)
    run_agents(rounds=3)
    assert violated() == {}
    for task in Task.objects.exclude(id=broken.id).filter(status__in=["finished", "failed"]):
        command(task.id, "retry", "user:ada")
    run_agents()
    run_jobs(queue)
    run_agents(rounds=3)
    assert violated() == {}


@pytest.mark.django_db(transaction=True)
def test_the_command_tells_what_is_wrong_and_exits_with_1() -> None:
    grid()
    task = submitted(parameters())
    out = io.StringIO()
    call_command("check_invariants", stdout=out)
    assert out.getvalue() == f"{len(INVARIANTS)} invariants, 0 violations\n"
    task.params.delete()
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("check_invariants", "--json", stdout=out)
    assert ended.value.code == 1
    document = json.loads(out.getvalue())
    assert document["violations"] == 1
    assert next(i for i in document["invariants"] if i["violations"])["examples"] == [f"task {task.id}"]
    out = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("check_invariants", stdout=out)
    assert "task_parameters: 1  Every task has the parameters that it was submitted with." in out.getvalue()
