"""What-if and the broker come to the same choice, whichever policy the configuration names."""

from __future__ import annotations

import pytest

from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from brokerage.models import Decision, Job, Site, StorageEndpoint
from brokerage.queries.decisions import explanation_of
from brokerage.queries.what_if import what_if
from brokerage.rules.explain.explanation import Explanation
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents, take
from workqueues.models import Task

pytestmark = pytest.mark.django_db


@pytest.fixture
def task() -> Task:
    """A task of a share that has no jobs; of another share two run at Q2, and many wait at Q1."""
    q1, q2 = grid("Q1", "Q2")
    Site.objects.filter(name="SITE_Q2").update(nucleus=True)
    StorageEndpoint.objects.update(free_gb=50_000)
    for name, queue, events in (("full", q1, 400), ("running", q2, 20)):
        other = submitted(parameters(name, site=queue.name, nEvents=events))
        run_agents(1)
        Task.objects.filter(id=other.id).update(gshare="Users")
    for _ in range(2):
        take(q2)
    assert set(Job.objects.values_list("computing_queue__name", flat=True)) == {"Q1", "Q2"}
    Decision.objects.all().delete()
    return submitted(parameters("mine", prodSourceLabel="managed", site=None))


def told_of(task: Task) -> Explanation:
    """The last decision about the task."""
    story = explanation_of(Decision.objects.filter(task_id=task.id).latest("id"))
    assert story is not None
    return story


@pytest.mark.parametrize("policy", ["generic", "production", "analysis"])
def test_what_if_tells_the_choice_that_the_broker_makes_next(task: Task, policy: str) -> None:
    set_override("core", "POLICY_production", policy, who="ada", why="test")
    for name in ("refine", "feed"):
        run_agent(name, looked=True)
    Task.objects.filter(id=task.id).update(gshare="MC")
    told = {}
    for agent in ("assign", "generate"):
        task.refresh_from_db()
        told[agent] = what_if(task)
        run_agent(agent, looked=True)
        story = told_of(task)
        assert story.chosen
        assert (story.chosen, story.skipped) == (told[agent].before.chosen, told[agent].before.skipped)
    if policy == "generic":
        chosen = told_of(task).chosen
        assert [choice.name for choice in chosen] == ["Q2", "Q1"], "the jobs of all shares count"
        before_the_nucleus = told["assign"].jobs
        assert before_the_nucleus is not None
        assert before_the_nucleus.chosen == chosen
