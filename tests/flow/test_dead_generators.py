"""A generator that fails or dies halfway costs time, never files: what it had picked is given to jobs later."""

from __future__ import annotations

import pytest

from broker_site.foundation.agency.run import new_run, run_agent
from broker_site.foundation.kernel import clock
from brokerage.models import JobSpec
from tests.builders import catalogue_dataset, grid, reading, submitted
from workqueues.ledger.claims import claim_tasks
from workqueues.ledger.commands import command
from workqueues.ledger.picking import take_files
from workqueues.models import Dataset, File, JobParamsTemplate, Task

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def task() -> Task:
    """A task with four files, fed and ready."""
    grid("ALPHA")
    catalogue_dataset("in.data", 4)
    made = submitted(reading("t1", "in.data"))
    for name in ("refine", "feed", "assign"):
        run_agent(name, looked=True)
    return made


def states(task: Task) -> set[str]:
    return set(File.objects.filter(task_id=task.id, type="input").values_list("status", flat=True))


def rested(task: Task) -> None:
    """The wait after a failure is over."""
    Task.objects.filter(id=task.id).update(next_look_at=None)


def test_a_generator_that_fails_gives_its_files_back_and_the_task_goes_on_later(task: Task) -> None:
    JobParamsTemplate.objects.filter(task_id=task.id).update(job_params_template="${NONSENSE/X}")
    run_agent("generate", looked=True)
    task.refresh_from_db()
    assert "agent generate failed on this task" in task.error_dialog
    assert states(task) == {"ready"}
    JobParamsTemplate.objects.filter(task_id=task.id).update(job_params_template="--in ${IN/L}")
    rested(task)
    run_agent("generate", looked=True)
    assert states(task) == {"running"}


def test_files_picked_by_a_dead_generator_come_back_whoever_takes_its_claim_over(task: Task) -> None:
    dead = new_run("generate")
    dataset = Dataset.objects.get(task_id=task.id, type="input")
    claim_tasks(dead.id, 0.0, ["ready"], 1)
    assert len(take_files(dead.id, task.id, dataset.id, 3)) == 3
    File.objects.filter(dataset=dataset, status="ready").update(held="reported missing at ALPHA", look_due=clock.now())
    run_agent("feed", looked=True)
    assert "picked" not in states(task)
    for name in ("feed", "generate"):
        run_agent(name, looked=True)
    task.refresh_from_db()
    assert task.locked_by == ""
    assert "running" in states(task)


def test_files_that_a_dead_generator_had_are_not_taken_for_the_end_of_the_dataset(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("brokerage.ledger.generate.MOST_FILES", 3)
    dead = new_run("generate")
    dataset = Dataset.objects.get(task_id=task.id, type="input")
    claim_tasks(dead.id, 0.0, ["ready"], 1)
    assert len(take_files(dead.id, task.id, dataset.id, 2)) == 2
    for _ in range(2):
        run_agent("generate", looked=True)
    assert sorted(JobSpec.objects.values_list("n_input_files", flat=True)) == [2, 2]


def test_the_last_files_that_a_generator_has_when_the_task_is_paused_are_used_when_it_goes_on(task: Task) -> None:
    at_work = new_run("generate")
    dataset = Dataset.objects.get(task_id=task.id, type="input")
    claim_tasks(at_work.id, 60.0, ["ready"], 1)
    assert len(take_files(at_work.id, task.id, dataset.id, 4)) == 4
    command(task.id, "pause", "user:ada")
    assert states(task) == {"ready"}
    command(task.id, "resume", "user:ada")
    run_agent("generate", looked=True)
    assert states(task) == {"running"}
