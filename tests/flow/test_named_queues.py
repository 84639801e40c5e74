"""Tasks of production that say at which queues they may run, from their parameters to their jobs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from brokerage.models import ComputingQueue, Job, RequirementPlace, Site, StorageEndpoint
from brokerage.queries.task_status import task_status
from brokerage.rules.explain.task_status_text import reasons
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from workqueues.models import Task

pytestmark = pytest.mark.django_db

MAKING = ("refine", "feed", "assign", "generate")
LISTS = [
    ({"includedSite": ["ALPHA"]}, {"ALPHA"}),
    ({"includedSite": ["SITE_ALPHA"]}, {"ALPHA"}),
    ({"includedSite": ["A*", "GAMMA"]}, {"ALPHA", "GAMMA"}),
    ({"excludedSite": ["BETA"]}, {"ALPHA", "GAMMA"}),
    ({"includedSite": ["ALPHA", "AUTO"]}, {"ALPHA"}),
    ({"includedSite": ["ELSEWHERE", "AUTO"], "excludedSite": ["BETA"]}, {"ALPHA", "GAMMA"}),
    ({"includedSite": ["AUTO"], "excludedSite": ["BETA"]}, {"ALPHA", "GAMMA"}),
]


def nucleus(name: str) -> None:
    Site.objects.filter(name=f"SITE_{name}").update(nucleus=True)
    StorageEndpoint.objects.filter(name=f"{name}_DISK").update(free_gb=50_000)


def production(**more: Any) -> Task:
    """A task of production for which everything is done that agents can do before a pilot comes."""
    task = submitted(parameters("t", prodSourceLabel="managed", taskType="prod", **more))
    run_agents(2, MAKING)
    task.refresh_from_db()
    return task


def told(task: Task) -> str:
    return " ".join(reason.message for reason in reasons(task_status(task)))


@pytest.mark.parametrize("nuclei", [(), ("ALPHA",), ("BETA",)])
@pytest.mark.parametrize(("more", "allowed"), LISTS)
def test_jobs_of_production_go_only_where_its_lists_let_them(
    more: dict[str, Any], allowed: set[str], nuclei: tuple[str, ...]
) -> None:
    grid("ALPHA", "BETA", "GAMMA")
    for name in nuclei:
        nucleus(name)
    task = production(nEvents=200, **more)
    assert task.nucleus == (f"SITE_{nuclei[0]}" if nuclei else "")
    assert set(Job.objects.values_list("computing_queue__name", flat=True)) == allowed


@pytest.mark.parametrize(("more", "allowed"), LISTS)
def test_open_jobs_of_production_too(more: dict[str, Any], allowed: set[str]) -> None:
    grid("ALPHA", "BETA", "GAMMA")
    production(binding="late", **more)
    bound = set(Job.objects.exclude(computing_queue=None).values_list("computing_queue__name", flat=True))
    assert (bound or set(RequirementPlace.objects.values_list("computing_queue__name", flat=True))) == allowed
    assert Job.objects.count() == 4


def test_a_unified_queue_that_is_named_means_its_parts() -> None:
    alpha, _ = grid("ALPHA", "BETA")
    ComputingQueue.objects.update(capability="ucore", corecount=8)
    production(includedSite=["ALPHA"])
    assert Counter(Job.objects.values_list("computing_queue_id", flat=True)) == {alpha.id: 4}


def test_a_nucleus_of_a_queue_that_is_named_comes_first() -> None:
    grid("ALPHA", "BETA", "GAMMA")
    nucleus("ALPHA")
    nucleus("BETA")
    assert {production(includedSite=["BETA", "GAMMA"]).nucleus} == {"SITE_BETA"}


def test_urgent_work_whose_lists_leave_no_queue_of_its_nucleus_is_told_so() -> None:
    grid("ALPHA", "BETA")
    nucleus("BETA")
    task = production(includedSite=["ALPHA"], taskPriority=900)
    assert (task.nucleus, Job.objects.count()) == ("SITE_BETA", 0)
    assert "the closest is ALPHA: tasks of priority 900 run only at SITE_BETA" in told(task)
