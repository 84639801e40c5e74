"""The tasks of the demo on its own grid, with the policies that users get."""

from __future__ import annotations

import pytest
from django.core.management import call_command

from brokerage.models import ComputingQueue
from brokerage.queries.decisions import latest
from examples.demo.campaign import tasks
from tests.builders import pilot, submitted
from tests.flow.steps import run_agents
from workqueues.models import WorkQueue

pytestmark = pytest.mark.django_db


def test_the_first_task_of_the_demo_goes_to_every_queue() -> None:
    call_command("import_grid", "examples/grids/demo.json")
    WorkQueue.objects.get_or_create(queue_name="default", queue_type="", vo="*", defaults={"queue_order": 1000})
    for queue in ComputingQueue.objects.all():
        pilot(queue)
    task = submitted({**tasks("x")[0], "skipScout": True})  # scouts go to queues of the nucleus
    run_agents()
    task.refresh_from_db()
    assert (task.status, task.nucleus) == ("running", "ALPHA"), task.error_dialog
    nucleus, production = sorted(latest(task.id), key=lambda decision: decision.policy)
    assert (nucleus.policy, production.policy) == ("nucleus", "production")
    assert production.n_chosen == 4
