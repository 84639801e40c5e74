"""What a user writes about places, networks and software is what the brokers are asked."""

from __future__ import annotations

from typing import Any

import pytest

from broker_site.foundation.kernel import clock
from brokerage.models import Job, JobSpec
from brokerage.queries.asks import chunk_of, task_ask
from brokerage.queries.chunks import load_batch
from brokerage.rules.facts.ask import Chunk
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import run_agents
from workqueues.models import Dataset, Task
from workqueues.splitters.protocol import JobPlan

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("wish", "asked"),
    [
        ({"ipConnectivity": "full#IPv6"}, {"ip_connectivity": "full", "ip_stack": "IPv6"}),
        ({"ipConnectivity": "http"}, {"ip_connectivity": "http", "ip_stack": None}),
        ({"t1Weight": -1}, {"t1_weight": -1.0}),
        ({"t1Weight": 5}, {"t1_weight": 5.0}),
        ({"allowInputLAN": "only"}, {"direct_access_only": True}),
        ({"allowInputLAN": "use"}, {"direct_access_only": False}),
        ({"mergeOutput": True}, {"merge_output": True}),
        ({"avoidVP": True, "onlyTagsForFC": True}, {"avoid_vp": True, "only_tags_for_fc": True}),
        ({"coreCount": 0, "maxCoreCount": 16}, {"core_count": 0, "max_core_count": 16}),
        ({"container_name": "img:1"}, {"container_name": "img:1"}),
        ({"architecture": "x86_64-el9&nvidia"}, {"architecture": "x86_64-el9&nvidia"}),
        ({"transUses": "Sim-5.0.2"}, {"release": "Sim-5.0.2", "nightly": False}),
        ({"transUses": "Sim-5.0", "transHome": "Sim-rel_3"}, {"nightly": True}),
        ({"includedSite": "A,B", "excludedSite": ["C"]}, {"included_sites": ("A", "B"), "excluded_sites": ("C",)}),
        ({}, {"ip_connectivity": None, "t1_weight": 0.0, "avoid_vp": False, "max_core_count": None, "nightly": False}),
    ],
)  # fmt: skip
def test_wishes_of_a_task_reach_the_brokers(wish: dict[str, Any], asked: dict[str, Any]) -> None:
    grid("ALPHA")
    task = submitted(parameters("t1", **wish))
    run_agents()
    task.refresh_from_db()
    ask = task_ask(task, Chunk(), clock.now())
    assert {name: getattr(ask, name) for name in asked} == asked


@pytest.mark.parametrize(
    ("wish", "files"),
    [
        ({"nGBPerJob": 10}, [3, 3]),  # 6 + 2.5 GB of output at least
        ({"nGBPerJob": 10, "workDiskCount": 2, "workDiskUnit": "GB"}, [2, 2, 2]),  # 4 + 2.5 + 2
        ({"nGBPerJob": 12, "outDiskCount": 1, "outDiskUnit": "MB"}, [2, 2, 2]),  # as much output as input: 4 + 4
        ({"nGBPerJob": 10, "nFilesPerJob": 2}, [2, 2, 2]),
        ({"nGBPerJob": 1}, [1] * 6),
    ],
)
def test_jobs_are_as_large_as_ngbperjob_lets_them(wish: dict[str, Any], files: list[int]) -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 6, size=2 * 10**9)
    task = submitted(reading("t1", "in.data", **{"nFilesPerJob": None, "prodSourceLabel": "managed", **wish}))
    run_agents()
    assert list(JobSpec.objects.filter(job__task_id=task.id).order_by("job_id").values_list("n_input_files", flat=True)) == files


def test_jobs_of_a_task_whose_core_count_varies_take_the_slots_of_their_queue() -> None:
    (alpha,) = grid("ALPHA")
    alpha.corecount = 8
    alpha.save()
    task = submitted(parameters("t1", coreCount=0))
    run_agents()
    assert set(Job.objects.filter(task_id=task.id).values_list("core_count", flat=True)) == {8}


def test_what_is_asked_holds_for_the_largest_job_not_for_what_is_left_over() -> None:
    jobs = [JobPlan(0, 1, 100, 2000), JobPlan(1, 2, 25, 500)]
    chunk = chunk_of([], jobs, [])
    assert (chunk.n_events, chunk.job_gb) == (100, 2e-6)


@pytest.mark.parametrize(
    ("wish", "events", "walltime_s"),
    [({}, 100, 2000.0), ({"cpuTime": 9, "cpuTimeUnit": "HS06sPerEvent"}, 0, 2000.0), ({"cpuTime": 9}, 100, None)],
)
def test_the_time_per_megabyte_counts_only_where_none_follows_from_the_events(
    wish: dict[str, Any], events: int, walltime_s: float | None
) -> None:
    grid("ALPHA")
    task = submitted(parameters("t1", walltime=2, **wish))
    run_agents()
    task.refresh_from_db()
    assert task_ask(task, Chunk(n_events=events, gb=1.0), clock.now()).walltime_s == walltime_s


@pytest.mark.parametrize(("wish", "datasets"), [({}, {"in.data", "in.pile"}), ({"taskBrokerOnMaster": True}, {"in.data"})])
def test_the_nucleus_may_be_chosen_by_the_master_alone(wish: dict[str, Any], datasets: set[str]) -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 4)
    catalogue_dataset("in.pile", 8)
    task = submitted(reading("t1", "in.data", **wish))
    run_agents(1)
    master = Dataset.objects.get(task_id=task.id, type="input")
    Dataset.objects.create(task_id=task.id, vo="demo", dataset_name="in.pile", type="input", status="ready", master_id=master.id)
    batch = load_batch([Task.objects.get(id=task.id)], whole=True)
    assert {dataset.name for dataset in batch.whole_input(task)} == datasets
