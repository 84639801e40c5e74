"""Tasks wait while the grid that they would be brokered on is too old, and go on once it is fresh again (decision B14)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from broker_site.foundation.kernel import clock
from brokerage.models import Feed, Job
from brokerage.queries.what_if import NothingToDecide, current_request
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from workqueues.models import Task

pytestmark = pytest.mark.django_db


def test_a_task_waits_for_a_feed_that_is_too_old_and_goes_on_when_it_is_fresh() -> None:
    grid("ALPHA")
    feed = Feed.objects.create(name="queues", kind="cric-queues", place="http://127.0.0.1:1/q")
    then = clock.now() - timedelta(days=3)
    Feed.objects.update(good_at=then, data_at=then, fault="timeout", fault_since=clock.now(), tried_at=clock.now())
    task = submitted(parameters(nEvents=20, nEventsPerJob=10))
    run_agents()
    task.refresh_from_db()
    assert task.status == "pending"
    assert "feed queues: of 3 d ago; failing since " in task.error_dialog
    assert "too old to decide on" in task.error_dialog
    assert not Job.objects.exists()
    with pytest.raises(NothingToDecide, match="too old to decide on"):
        current_request(task)
    feed.data_at = clock.now()
    feed.save(update_fields=["data_at"])
    Task.objects.filter(id=task.id).update(next_look_at=then)
    run_agents()
    assert Job.objects.filter(task_id=task.id).count() == 2
