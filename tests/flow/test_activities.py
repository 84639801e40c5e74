"""A task is of one activity, by its label, wherever that matters: in brokerage, throttling, waiting and ending."""

from __future__ import annotations

import pytest

from brokerage.models import Decision
from tests.builders import grid, parameters, submitted
from tests.flow.steps import BAD, end, run_agents, take
from workqueues.agents.each import rest_s
from workqueues.rules.throttle.limits import component_of

pytestmark = pytest.mark.django_db

ACTIVITIES = [
    ("managed", "production", "prod_job_throttler", 3600),
    ("test", "production", "prod_job_throttler", 3600),
    ("user", "analysis", "anal_job_throttler", 1200),
    ("panda", "analysis", "anal_job_throttler", 1200),
    ("ptest", "generic", "prod_job_throttler", 3600),
    ("install", "generic", "prod_job_throttler", 3600),
]


@pytest.mark.parametrize("task_type", ["prod", "anal", "other"])
@pytest.mark.parametrize(("label", "activity", "throttler", "rest"), ACTIVITIES)
def test_brokerage_throttler_and_pauses_agree_on_the_activity(
    label: str, activity: str, throttler: str, rest: float, task_type: str
) -> None:
    grid("ALPHA")
    task = submitted(parameters(prodSourceLabel=label, taskType=task_type, ramCount=64000))
    run_agents(1)
    assert list(Decision.objects.values_list("policy", flat=True)) == [activity]
    assert (component_of(label), rest_s(task)) == (throttler, rest)


@pytest.mark.parametrize(
    ("label", "status"), [("managed", "exhausted"), ("user", "finished"), ("panda", "finished"), ("ptest", "finished")]
)
def test_the_end_of_a_task_that_was_done_in_part_follows_its_label(label: str, status: str) -> None:
    alpha, *_ = grid("ALPHA")
    task = submitted(parameters(prodSourceLabel=label, taskType="anal", useExhausted=True, maxAttempt=1, nEvents=20))
    run_agents(1)
    end(take(alpha))
    end(take(alpha), BAD)
    run_agents()
    task.refresh_from_db()
    assert task.status == status
