"""Tasks whose files wait for the catalogue do not keep those from being served that could go on."""

from __future__ import annotations

import pytest

from broker_site.foundation.agency.run import run_agent
from brokerage.agents.generate import BATCH
from brokerage.models import Job
from tests.builders import grid, parameters, submitted
from workqueues.models import File

pytestmark = pytest.mark.django_db


def test_tasks_whose_files_are_all_held_do_not_keep_others_from_being_served() -> None:
    grid("ALPHA")
    held = [submitted(parameters(f"held{n}", taskPriority=900, nEvents=1, nEventsPerJob=1)) for n in range(BATCH)]
    other = submitted(parameters("other", taskPriority=100, nEvents=1, nEventsPerJob=1))
    for agent in ("refine", "feed", "assign") * 2:
        run_agent(agent, looked=True)
    assert File.objects.filter(task_id__in=[task.id for task in held], status="ready").update(held="reported missing") == BATCH
    for _ in range(3):
        run_agent("generate", looked=True)
    assert list(Job.objects.values_list("task_id", flat=True)) == [other.id]
