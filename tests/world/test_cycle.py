"""A cycle asks the database as often for many tasks and queues as for few."""

from __future__ import annotations

import pytest

from benchmarks.cycle import asked, fill_grid, fill_jobs, fill_tasks, measured_cycle
from broker_site.foundation.agency.run import run_agent
from brokerage.agents.dataset_jobs import QUEUES_FULL
from brokerage.agents.generate import BATCH
from brokerage.models import Decision, Job
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import run_agents
from workqueues.catalogue import CatalogueUnavailable, LocalCatalogue
from workqueues.models import CatalogueDataset, File, Task

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("tasks", "queues"), [(10, 5), (40, 5), (10, 50), (40, 50)])
def test_loading_deciding_and_storing_ask_the_same_number_of_times(tasks: int, queues: int) -> None:
    fill_grid(queues)
    made = fill_tasks(tasks, queues)
    fill_jobs(200, made)
    measured_cycle(made)
    told = measured_cycle(made)
    assert told["statements"] <= 34
    assert told["decision_bytes_most"] <= 8000


def test_generating_asks_in_proportion_to_the_tasks_whatever_the_queues() -> None:
    def statements(tasks: int, queues: int) -> int:
        for n in range(tasks):
            submitted(reading(f"t{queues}.{tasks}.{n}", "in.data", ramCount=64000))
        for name in ("refine", "feed", "assign"):
            for _ in range(tasks // 20 + 1):
                run_agent(name, looked=True)
        with asked() as found:
            run_agent("generate", looked=True)
        assert Task.objects.filter(status="pending").count() >= tasks
        Task.objects.update(next_look_at="2100-01-01T00:00:00Z")
        return len(found)

    grid("ALPHA")
    catalogue_dataset("in.data", 4)
    one, ten = statements(1, 1), statements(10, 1)
    fill_grid(40)
    assert statements(10, 41) <= ten + 5, "the changed grid is stored"
    assert (ten - one) / 9 <= 35, "statements for a further task that waits: two look at storages, one joins a group"


def test_tasks_for_which_the_queues_have_no_room_cost_no_statement_each() -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 60)
    first = submitted(reading("first", "in.data", nFilesPerJob=1))
    run_agents(1, ("refine", "feed", "assign", "generate"))
    assert Job.objects.filter(task_id=first.id).count() < 60, "the queue is full"

    def statements(tasks: int) -> int:
        more = [submitted(reading(f"t{tasks}.{n}", "in.data", nFilesPerJob=1)) for n in range(tasks)]
        run_agents(2, ("refine", "feed", "assign"))
        with asked() as found:
            run_agent("generate", looked=True)
        told = Task.objects.filter(id__in=[task.id for task in more]).values_list("status", "error_dialog", "locked_by")
        assert set(told) == {("ready", QUEUES_FULL.reason, "")}
        assert not File.objects.filter(status="picked").exists()
        Task.objects.filter(status="ready").update(next_look_at="2100-01-01T00:00:00Z")
        return len(found)

    assert statements(15) <= statements(1) + 2


@pytest.mark.django_db(transaction=True)
def test_tasks_whose_queue_is_full_hide_no_task_that_finds_room_elsewhere() -> None:
    grid("ALPHA", "BETA")
    catalogue_dataset("in.data", 60)
    submitted(reading("first", "in.data", nFilesPerJob=1, site="ALPHA"))
    run_agents(1, ("refine", "feed", "assign", "generate"))
    for n in range(BATCH):
        submitted(reading(f"full.{n}", "in.data", nFilesPerJob=1, site="ALPHA"))
    catalogue_dataset("beta.data", 60, storage="BETA_DISK")
    last = submitted(reading("last", "beta.data", nFilesPerJob=1, site="BETA"))
    run_agents(2, ("refine", "feed", "assign"))
    for _ in range(2):
        run_agent("generate", looked=True)
        Task.objects.update(next_look_at=None)
    assert Job.objects.filter(task_id=last.id).exists()


def test_a_task_waits_while_the_catalogue_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 4)
    task = submitted(reading("t", "in.data"))
    for name in ("refine", "feed"):
        run_agent(name, looked=True)

    def silent(*_: object) -> None:
        raise CatalogueUnavailable("it is being mended")

    with monkeypatch.context() as patch:
        patch.setattr(LocalCatalogue, "replicas", silent)
        run_agent("generate", looked=True)
    task.refresh_from_db()
    assert (task.status, task.error_dialog) == ("pending", "the catalogue does not answer: it is being mended")
    assert not Decision.objects.exists()


def test_a_task_whose_dataset_is_gone_waits_with_its_name() -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 4)
    task = submitted(reading("t", "in.data"))
    for name in ("refine", "feed"):
        run_agent(name, looked=True)
    CatalogueDataset.objects.all().delete()
    run_agent("generate", looked=True)
    task.refresh_from_db()
    assert (task.status, task.error_dialog) == ("pending", "the catalogue does not know the input dataset in.data")


def test_a_task_of_a_user_runs_where_its_input_is_and_says_so_where_it_would_have_to_move() -> None:
    alpha, beta = grid("ALPHA", "BETA")
    catalogue_dataset("in.data", 4, storage="BETA_DISK")
    task = submitted(reading("t", "in.data"))
    run_agents()
    (decision,) = Decision.objects.filter(task_id=task.id)
    assert (decision.policy, decision.n_chosen) == ("analysis", 1)
    beta.status = "offline"
    beta.save()
    other = submitted(reading("u", "in.data"))
    run_agents()
    other.refresh_from_db()
    assert (other.status, other.error_dialog) == (
        "pending",
        (
            "the input is not at the chosen queues (ALPHA), and is not brought there: BETA has it, and jobs of users go to their "
            "input while no job of the task was closed there lately"
        ),
    )
    assert alpha.status == "online"
