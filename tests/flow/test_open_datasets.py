"""A task whose input is still open: new files become jobs as they come, and it ends when no more do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from broker_site.foundation.access.principal import Principal
from broker_site.foundation.agency.run import Run, run_agent
from broker_site.foundation.kernel import clock
from brokerage.ledger.task_changes import change_task
from brokerage.models import ComputingQueue, Job
from brokerage.queries.task_status import task_status
from brokerage.rules.explain.task_status_text import headline, reasons
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import end, let_confirm, run_agents, run_jobs, take
from workqueues.agents.input_loader import load_inputs, see_inputs
from workqueues.ledger.claims import claim_tasks
from workqueues.ledger.commands import command
from workqueues.ledger.open_inputs import StillWritten, close_dataset
from workqueues.models import CatalogueDataset, CatalogueFile, Dataset, File, Replica, Task, TaskChange
from workqueues.rules.jobs.open_inputs import COLLECTED
from workqueues.rules.refine import TaskPlan
from workqueues.rules.task.changes import CHANGES

pytestmark = pytest.mark.django_db
ADA = Principal("user", "ada", roles={"demo": frozenset({"submitter"})})


@pytest.fixture
def queue() -> ComputingQueue:
    return grid()[0]


def open_dataset(name: str, n: int, **more: Any) -> CatalogueDataset:
    dataset = catalogue_dataset(name, n, **more)
    CatalogueDataset.objects.filter(id=dataset.id).update(state="open")
    return dataset


def grow(dataset: CatalogueDataset, n: int, events: int | None = 10) -> None:
    """`n` more files, as if somebody had put them there; their names stand before those of today."""
    first = dataset.files.count()
    files = CatalogueFile.objects.bulk_create(
        CatalogueFile(dataset=dataset, lfn=f"a.{first + i:06d}", fsize=1000, checksum="00000001", n_events=events)
        for i in range(n)
    )
    Replica.objects.bulk_create(Replica(file=f, storage="ALPHA_DISK") for f in files)


def let_check() -> None:
    """Time goes by until the open inputs are read again."""
    Dataset.objects.filter(state_check_expiration__isnull=False).update(
        state_check_expiration=F("state_check_expiration") - timedelta(hours=2)
    )
    Task.objects.filter(status="defined").update(next_look_at=F("next_look_at") - timedelta(hours=2))


def status(task: Task) -> str:
    task.refresh_from_db()
    return task.status


def lfns(task: Task) -> list[str]:
    return list(File.objects.filter(task=task, type="input").order_by("id").values_list("lfn", flat=True))


def test_new_files_of_an_open_dataset_become_jobs_and_the_task_ends_when_it_is_closed(queue: ComputingQueue) -> None:
    dataset = open_dataset("in.data", 4)
    task = submitted(reading("t", "in.data", runUntilClosed=True))
    run_agents()
    assert run_jobs(queue) == 2
    run_agents(3)
    assert status(task) == "defined", "its files are through, but more may come"
    assert headline(task_status(task)) == (
        "Defined: all files so far are through; in.data is still open, and new files are looked for"
    )
    grow(dataset, 3)
    run_agents(3)
    assert run_jobs(queue) == 0, "it is not time to look yet"
    let_check()
    run_agents(3)
    assert run_jobs(queue) == 2
    run_agents(3)
    assert status(task) == "defined"
    close_dataset(dataset.id)
    run_agents(3)
    assert status(task) == "done"
    assert len(lfns(task)) == len(set(lfns(task))) == 7
    counts = Dataset.objects.get(task=task, type="input")
    assert (counts.n_files, counts.n_files_finished, counts.state, counts.state_check_expiration) == (7, 7, "closed", None)


def test_files_that_come_while_jobs_run_are_added_once_however_often_it_is_read(queue: ComputingQueue) -> None:
    dataset = open_dataset("in.data", 4)
    task = submitted(reading("t", "in.data", runUntilClosed=True))
    run_agents()
    grow(dataset, 2)
    for _ in range(3):
        let_check()
        run_agents()
    assert status(task) == "running"
    assert "In.data is still open, and new files are looked for." in [r.message for r in reasons(task_status(task))]
    assert lfns(task) == [f"in.data.{i:06d}" for i in range(4)] + ["a.000004", "a.000005"]
    assert Job.objects.filter(task_id=task.id).count() == 3
    events = File.objects.filter(task=task, type="input").order_by("id").values_list("first_event", flat=True)
    assert list(events) == [1, 11, 21, 31, 41, 51], "new files are counted behind the others, whatever their names"


def test_a_task_that_waits_for_more_leaves_no_trail_of_its_looks(queue: ComputingQueue) -> None:
    open_dataset("in.data", 2)
    task = submitted(reading("t", "in.data", runUntilClosed=True))
    run_agents()
    run_jobs(queue)
    run_agents(2)
    assert status(task) == "defined"
    before = TaskChange.objects.filter(task_id=task.id).count()
    for _ in range(4):
        let_check()
        run_agents()
    assert status(task) == "defined"
    assert TaskChange.objects.filter(task_id=task.id).count() == before


def test_without_the_wish_a_task_ends_with_the_files_that_an_open_dataset_had(queue: ComputingQueue) -> None:
    dataset = open_dataset("in.data", 2)
    task = submitted(reading("t", "in.data"))
    run_agents()
    assert Dataset.objects.get(task=task, type="input").state == "open", "as the catalogue says, not as one would like it"
    grow(dataset, 2)
    let_check()
    run_jobs(queue)
    run_agents(3)
    assert status(task) == "done"
    assert len(lfns(task)) == 2


def test_an_open_dataset_without_files_is_waited_for_and_the_wait_ends_no_task(queue: ComputingQueue) -> None:
    dataset = open_dataset("in.data", 0)
    task = submitted(reading("t", "in.data", runUntilClosed=True))
    run_agents()
    assert status(task) == "pending"
    assert task.frozen_time is None
    assert "no files yet" in task.error_dialog
    grow(dataset, 2)
    Task.objects.update(next_look_at=None)
    run_agents()
    assert run_jobs(queue) == 1


def test_an_open_dataset_that_is_closed_empty_breaks_the_task() -> None:
    dataset = open_dataset("in.data", 0)
    task = submitted(reading("t", "in.data", runUntilClosed=True))
    run_agents()
    close_dataset(dataset.id)
    Task.objects.update(next_look_at=None)
    run_agents(3)
    assert status(task) == "broken"


def test_no_more_files_are_taken_than_the_task_wants(queue: ComputingQueue) -> None:
    dataset = open_dataset("in.data", 2)
    task = submitted(reading("t", "in.data", runUntilClosed=True, nFiles=3))
    run_agents()
    grow(dataset, 5)
    let_check()
    run_agents()
    run_jobs(queue)
    run_agents(3)
    assert status(task) == "done", "it has what it asked for, though the dataset is open"
    assert len(lfns(task)) == 3


def test_events_that_are_wanted_of_an_open_dataset_are_counted_over_all_its_looks(queue: ComputingQueue) -> None:
    dataset = open_dataset("in.data", 2)
    task = submitted(reading("t", "in.data", runUntilClosed=True, nEvents=35, nEventsPerJob=5, nFilesPerJob=None))
    run_agents()
    grow(dataset, 5)
    let_check()
    run_agents()
    run_jobs(queue)
    run_agents(3)
    run_jobs(queue)
    run_agents(3)
    assert status(task) == "done"
    assert list(File.objects.filter(task=task, type="input").order_by("id").values_list("n_events", flat=True)) == [10, 10, 10, 5]


@pytest.mark.parametrize("busy", [False, True])
def test_a_task_whose_input_a_workflow_feeds_ends_when_it_is_told_that_this_is_complete(
    queue: ComputingQueue, busy: bool
) -> None:
    dataset = catalogue_dataset("in.data", 2)
    task = submitted(reading("t", "in.data", workflowHoldup=True))
    run_agents()
    assert run_jobs(queue) == 1
    run_agents(3)
    assert status(task) == "defined", "the dataset is closed, but the workflow may feed it"
    assert "new files of in.data are looked for until somebody says" in headline(task_status(task))
    grow(dataset, 2)
    let_check()
    run_agents(3)
    if not busy:
        assert run_jobs(queue) == 1
        run_agents(3)
    grow(dataset, 1)
    row = CHANGES["input-complete"]
    changed = change_task(ADA, task, row, row.read({})[0])[1]
    assert changed.after == {"workflowHoldup": False}
    run_agents(3)
    run_jobs(queue)
    run_agents(3)
    assert (status(task), len(lfns(task))) == ("done", 5), "it was read once more"
    assert "workflowHoldup" not in task.params.task_params


def test_an_empty_input_that_a_workflow_feeds_is_waited_for(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 0)
    task = submitted(reading("t", "in.data", workflowHoldup=True))
    run_agents()
    assert (status(task), task.frozen_time) == ("pending", None)


def test_whole_jobs_are_waited_for_where_the_split_rule_holds_for_open_inputs_too(queue: ComputingQueue) -> None:
    dataset = open_dataset("in.data", 3)
    task = submitted(reading("t", "in.data", runUntilClosed=True, respectSplitRule=True))
    run_agents()
    assert run_jobs(queue) == 1
    run_agents(3)
    assert run_jobs(queue) == 0, "the third file waits for a second one"
    assert status(task) == "running"
    close_dataset(dataset.id)
    run_agents(3)
    assert run_jobs(queue) == 1
    run_agents(3)
    assert status(task) == "done"


def test_a_task_that_was_killed_while_its_input_was_open_follows_it_again_when_it_is_retried(queue: ComputingQueue) -> None:
    dataset = open_dataset("in.data", 2)
    task = submitted(reading("t", "in.data", runUntilClosed=True))
    run_agents()
    run_jobs(queue)
    run_agents(2)
    command(task.id, "kill", "user:ada")
    run_agents(2)
    assert status(task) == "aborted"
    assert not Dataset.objects.filter(task=task, state_check_expiration__isnull=False).exists(), "nobody reads it any more"
    grow(dataset, 2)
    command(task.id, "retry", "user:ada")
    run_agents(3)
    assert run_jobs(queue) == 1
    run_agents(2)
    assert status(task) == "defined"


def test_a_file_that_the_catalogue_has_no_more_is_lost_once_that_is_confirmed(queue: ComputingQueue) -> None:
    dataset = open_dataset("in.data", 3)
    task = submitted(reading("t", "in.data", runUntilClosed=True, respectSplitRule=True))
    run_agents()
    run_jobs(queue)
    dataset.files.filter(lfn="in.data.000002").delete()
    let_check()
    run_agents()
    file = File.objects.get(task=task, lfn="in.data.000002")
    assert file.held.startswith("the catalogue does not have it any more")
    let_confirm()
    run_agents()
    file.refresh_from_db()
    assert file.status == "lost"
    close_dataset(dataset.id)
    run_agents(3)
    assert status(task) == "finished"
    assert task.error_dialog == "2 of 3 files were processed, 1 is lost or damaged"


def test_a_run_that_died_between_reading_and_going_on_is_made_good_by_the_next(queue: ComputingQueue) -> None:
    dataset = open_dataset("in.data", 2)
    task = submitted(reading("t", "in.data", runUntilClosed=True))
    run_agents()
    run_jobs(queue)
    run_agents(2)
    grow(dataset, 2)
    let_check()
    run = Run("feed", "feed:dead", clock.now(), 60)
    (claimed,) = claim_tasks(run.id, run.claim_s, ["defined"], 1)
    planned, _, written = see_inputs(claimed)
    assert isinstance(planned, TaskPlan)
    assert load_inputs(run, claimed, planned, written).new == 2
    Task.objects.update(locked_time="2020-01-01T00:00Z")
    run_agents(2)
    assert run_jobs(queue) == 1
    assert len(lfns(task)) == 4


def parent_and_child(**more: Any) -> tuple[Task, Task]:
    parent = submitted(parameters("p", taskPriority=800))
    child = submitted(reading("c", "p.EVT", parentTaskName="p", noWaitParent=True, nFilesPerJob=1, **more))
    return parent, child


def test_a_child_begins_while_its_parent_still_writes(queue: ComputingQueue) -> None:
    parent, child = parent_and_child(noInputPooling=True)
    run_agents(1, ("refine",))
    assert status(child) == "pending"
    assert child.frozen_time is None
    run_agents(2)
    assert status(child) == "pending", "the parent has made nothing yet"
    end(take(queue))
    Task.objects.filter(id=child.id).update(next_look_at=None)
    run_agents(2)
    assert status(parent) == "running"
    assert Job.objects.filter(task_id=child.id).count() == 1
    while Job.objects.filter(ended_at=None).exists():
        run_jobs(queue)
        run_agents(2)
    assert status(parent) == "done"
    run_agents(3)
    while Job.objects.filter(ended_at=None).exists():
        run_jobs(queue)
        run_agents(3)
    assert status(child) == "done", "the end of the parent is known at once"
    assert len(lfns(child)) == len(set(lfns(child))) == 4


def test_files_of_a_running_parent_are_collected_for_many_jobs_and_all_are_used_at_its_end(queue: ComputingQueue) -> None:
    _, child = parent_and_child(nChunksToWait=2)
    run_agents(2)
    end(take(queue))
    Task.objects.filter(id=child.id).update(next_look_at=None)
    run_agents(2)
    assert Job.objects.filter(task_id=child.id).count() == 0
    assert File.objects.get(task=child, type="input").held == COLLECTED
    end(take(queue))
    end(take(queue))
    let_check()
    run_agents(2)
    assert Job.objects.filter(task_id=child.id).count() == 2
    assert File.objects.filter(task=child, type="input", held=COLLECTED).count() == 1
    end(take(queue))
    run_agents(4)
    assert Job.objects.filter(task_id=child.id).count() == 4


def test_a_dataset_that_a_live_task_writes_is_not_closed(queue: ComputingQueue) -> None:
    submitted(parameters("p"))
    run_agents(1, ("refine", "feed"))
    with pytest.raises(StillWritten, match=r"task \d+, which has not ended, writes to p\.EVT"):
        close_dataset(CatalogueDataset.objects.get(name="p.EVT").id)


def test_a_new_file_that_cannot_be_used_is_told_on_the_task_and_others_go_on(queue: ComputingQueue) -> None:
    dataset = open_dataset("in.data", 2)
    task = submitted(reading("t", "in.data", runUntilClosed=True, nEventsPerJob=5, nFilesPerJob=None))
    run_agents()
    grow(dataset, 1, events=None)
    let_check()
    run_agent("feed", looked=True)
    assert status(task) == "running"
    assert task.error_dialog.startswith("new files of its input cannot be used: nEventsPerJob: nEventsPerJob needs the events")
