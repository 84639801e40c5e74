"""Lost outputs are made again: the same names of the same input, after inputs that are gone too, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from broker_site.foundation.access.principal import SYSTEM
from brokerage.models import ComputingQueue, Job, JobSpec
from brokerage.queries.invariants import look
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import BAD, end, run_agents, run_jobs, take
from workqueues.ledger.commands import command
from workqueues.ledger.recovery import CannotRecover, recover
from workqueues.models import CatalogueDataset, CatalogueFile, Dataset, EventRange, File, FileChange, Replica, Task
from workqueues.rules.refine import DatasetKey
from workqueues.states import TASK

pytestmark = pytest.mark.django_db


@pytest.fixture
def queue() -> ComputingQueue:
    return grid()[0]


def run_to_end(queue: ComputingQueue) -> None:
    """All tasks to their ends, as far as these come by themselves."""
    for _ in range(8):
        run_agents(1)
        run_jobs(queue)
        if not Task.objects.exclude(status__in=TASK.final).exists():
            break


def done(queue: ComputingQueue, params: dict[str, Any]) -> Task:
    task = submitted(params)
    run_to_end(queue)
    task.refresh_from_db()
    assert task.status == "done", task.error_dialog
    return task


def broken() -> list[str]:
    return [f"{found.invariant.name}: {found.violations}" for found in look() if found.violations]


def in_catalogue(name: str) -> list[str]:
    return list(CatalogueFile.objects.filter(dataset__name=name).order_by("lfn").values_list("lfn", flat=True))


def used(task: Task, lfn: str) -> set[str]:
    """The input files of the job that made the file."""
    job = File.objects.get(task=task, lfn=lfn, out_job_id__isnull=False).out_job_id
    return set(File.objects.filter(task=task, job_id=job, type="input").values_list("lfn", flat=True))


def maker(task: Task, lfn: str) -> int:
    """The job that made the file."""
    return File.objects.get(task=task, lfn=lfn, status="finished", out_job_id__isnull=False).out_job_id or 0


def parameters_of(task: Task, lfn: str) -> str:
    """What the job that made the file was told."""
    return JobSpec.objects.get(job_id=maker(task, lfn)).job_parameters


def lose(name: str, *lfns: str) -> None:
    """Their copies are gone, and the catalogue knows it."""
    Replica.objects.filter(file__dataset__name=name, file__lfn__in=lfns).delete()


def test_lost_files_are_made_again_under_their_names_of_the_same_input(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 7)
    old = done(queue, reading("t", "in.data"))
    before = in_catalogue("t.OUT")
    lost = [before[2], before[1]]
    (task,) = recover(DatasetKey("demo", "t.OUT"), lost, SYSTEM, "the disk broke")
    assert in_catalogue("t.OUT") == [before[0], before[3]], "nobody reads what is lost"
    run_to_end(queue)
    task.refresh_from_db()
    assert (task.status, task.user_name, task.task_name) == ("done", "ada", "t.recov1")
    assert Job.objects.filter(task_id=task.id).count() == 2
    assert in_catalogue("t.OUT") == before
    for lfn in lost:
        assert used(task, lfn) == used(old, lfn)
    assert CatalogueDataset.objects.get(name="t.OUT").state == "closed"
    assert len(in_catalogue("t.log")) == 4, "the old logs are as they were"
    assert len(in_catalogue("t.log.recov1")) == 2
    changes = FileChange.objects.filter(task_id=old.id, new="lost").values_list("why", flat=True)
    assert set(changes) == {f"the disk broke; task {task.id} makes it again"}
    old.refresh_from_db()
    assert old.status == "done"


def test_a_job_of_a_recovery_is_told_what_the_one_before_was(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 6)
    number = {"type": "template", "param_type": "number", "value": "--first ${FIRSTEVENT} --most ${MAXEVENTS}"}
    old = done(queue, reading("t", "in.data", jobParameters=[*reading("t", "in.data")["jobParameters"], number]))
    lfn = in_catalogue("t.OUT")[2]
    (task,) = recover(DatasetKey("demo", "t.OUT"), [lfn], SYSTEM)
    run_to_end(queue)
    told = [parameters_of(each, lfn) for each in (old, task)]
    assert "--first 41 --most 20" in told[0]
    assert told[1] == told[0]


def test_a_job_of_a_recovery_that_fails_gives_the_name_again(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 4)
    done(queue, reading("t", "in.data"))
    before = in_catalogue("t.OUT")
    (task,) = recover(DatasetKey("demo", "t.OUT"), before[:1], SYSTEM)
    run_agents(2)
    end(take(queue), BAD)
    run_to_end(queue)
    task.refresh_from_db()
    assert task.status == "done"
    assert in_catalogue("t.OUT") == before
    assert broken() == []


def test_a_task_without_input_gives_the_same_records_and_seeds_again(queue: ComputingQueue) -> None:
    old = done(queue, parameters("t"))
    before = in_catalogue("t.EVT")

    def numbers(task: Task, lfn: str) -> dict[str, str]:
        job = File.objects.get(task=task, lfn=lfn, out_job_id__isnull=False).out_job_id
        return dict(File.objects.filter(task=task, job_id=job).values_list("type", "lfn"))

    (task,) = recover(DatasetKey("demo", "t.EVT"), [before[1], before[3]], SYSTEM)
    run_to_end(queue)
    task.refresh_from_db()
    assert task.status == "done", task.error_dialog
    assert in_catalogue("t.EVT") == before
    for lfn in (before[1], before[3]):
        assert numbers(task, lfn) == numbers(old, lfn)


def test_inputs_that_are_gone_too_are_made_again_first(queue: ComputingQueue) -> None:
    done(queue, parameters("a"))
    done(queue, reading("b", "a.EVT"))
    inputs, outputs = in_catalogue("a.EVT"), in_catalogue("b.OUT")
    lose("a.EVT", inputs[0])
    tasks = recover(DatasetKey("demo", "b.OUT"), outputs, SYSTEM)
    assert [task.task_name for task in tasks] == ["a.recov1", "b.recov1"]
    run_agents(1)
    tasks[1].refresh_from_db()
    assert tasks[1].status == "pending"
    assert tasks[1].error_dialog.startswith(f"waiting for task {tasks[0].id}, which writes the input a.EVT")
    run_to_end(queue)
    for task in tasks:
        task.refresh_from_db()
    assert [task.status for task in tasks] == ["done", "done"]
    assert (in_catalogue("a.EVT"), in_catalogue("b.OUT")) == (inputs, outputs)
    assert Job.objects.filter(task_id=tasks[0].id).count() == 1


def test_an_input_that_is_gone_and_that_nobody_made_refuses_all(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 4)
    done(queue, reading("t", "in.data"))
    before = in_catalogue("t.OUT")
    lose("in.data", "in.data.000001")
    with pytest.raises(CannotRecover, match=r"inputs are gone too: no job has made a file in\.data\.000001 of in\.data"):
        recover(DatasetKey("demo", "t.OUT"), before, SYSTEM)
    assert in_catalogue("t.OUT") == before
    assert Task.objects.count() == 1


def test_a_file_that_nobody_made_is_refused_and_nothing_changes(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 2)
    done(queue, reading("t", "in.data"))
    (lfn,) = in_catalogue("t.OUT")
    with pytest.raises(CannotRecover, match=r"no job has made a file nobody of t\.OUT"):
        recover(DatasetKey("demo", "t.OUT"), [lfn, "nobody"], SYSTEM)
    assert in_catalogue("t.OUT") == [lfn]
    assert not File.objects.filter(lost_at__isnull=False).exists()


def test_a_file_is_made_again_once_and_once_more_when_it_is_lost_again(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 4)
    old = done(queue, reading("t", "in.data"))
    before = in_catalogue("t.OUT")
    (first,) = recover(DatasetKey("demo", "t.OUT"), before[:1], SYSTEM)
    with pytest.raises(CannotRecover, match=rf"task {first.id} makes .* again already"):
        recover(DatasetKey("demo", "t.OUT"), before[:1], SYSTEM)
    run_to_end(queue)
    (second,) = recover(DatasetKey("demo", "t.OUT"), before[:1], SYSTEM)
    run_to_end(queue)
    second.refresh_from_db()
    assert second.status == "done", second.error_dialog
    assert in_catalogue("t.OUT") == before
    assert used(second, before[0]) == used(old, before[0])


PARTS = {"type": "template", "param_type": "number", "value": "--of ${SKIPEVENTS} ${MAXEVENTS} ${FIRSTEVENT}"}


def cut_task(**more: Any) -> dict[str, Any]:
    """Jobs of four events each, also across the ends of files."""
    items = [*reading("t", "in.data")["jobParameters"], PARTS]
    return reading("t", "in.data", nFilesPerJob=None, nEventsPerJob=4, jobParameters=items, **more)


def ranges(task: Task, lfn: str) -> list[tuple[str, int | None, int | None]]:
    """The events of which the job made the file."""
    done = EventRange.objects.filter(job_id=maker(task, lfn), status="done").order_by("file_id", "def_min_event_id")
    return list(done.values_list("file__lfn", "def_min_event_id", "def_max_event_id"))


def test_files_of_jobs_that_had_parts_of_files_are_made_of_just_these(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 3)
    old = done(queue, cut_task())
    before = in_catalogue("t.OUT")
    lost = [before[1], before[2], before[4]]
    assert [len(ranges(old, lfn)) for lfn in lost] == [1, 2, 1], "one goes across the end of a file"
    told = {lfn: parameters_of(old, lfn) for lfn in lost}
    (first,) = recover(DatasetKey("demo", "t.OUT"), lost, SYSTEM)
    run_agents(2)
    assert Job.objects.filter(task_id=first.id).count() == 3
    end(take(queue), BAD)
    assert broken() == []
    run_to_end(queue)
    first.refresh_from_db()
    assert (first.status, in_catalogue("t.OUT")) == ("done", before)
    (second,) = recover(DatasetKey("demo", "t.OUT"), lost[1:2], SYSTEM)
    run_to_end(queue)
    second.refresh_from_db()
    assert (second.status, in_catalogue("t.OUT")) == ("done", before)
    for task, lfns in ((first, lost), (second, lost[1:2])):
        assert [ranges(task, lfn) for lfn in lfns] == [ranges(old, lfn) for lfn in lfns]
        assert {lfn: parameters_of(task, lfn) for lfn in lfns} == {lfn: told[lfn] for lfn in lfns}
    assert broken() == []


def test_parts_of_files_beside_files_of_other_datasets_are_refused(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 1)
    catalogue_dataset("low.data", 3)
    params = cut_task()
    params["jobParameters"].insert(
        1, {"type": "template", "param_type": "input", "dataset": "low.data", "value": "--low ${LOW/L}"}
    )
    done(queue, params)
    with pytest.raises(CannotRecover, match="parts of files beside files of other datasets"):
        recover(DatasetKey("demo", "t.OUT"), in_catalogue("t.OUT")[:1], SYSTEM)


@pytest.mark.parametrize("name", ["instantiateTmpl", "instantiateTmplSite"])
def test_files_of_a_dataset_that_was_made_of_a_template_come_back_to_it(queue: ComputingQueue, name: str) -> None:
    catalogue_dataset("in.data", 4)
    old = done(queue, reading("t", "in.data", **{name: True}))
    made = Dataset.objects.get(task=old, type="output").dataset_name
    assert made.startswith("t.OUT.")
    before = in_catalogue(made)
    (task,) = recover(DatasetKey("demo", made), before[1:], SYSTEM)
    run_to_end(queue)
    task.refresh_from_db()
    assert (task.status, in_catalogue(made)) == ("done", before)
    assert used(task, before[1]) == used(old, before[1])
    assert [len(in_catalogue(d.dataset_name)) for d in Dataset.objects.filter(task=task, type="log")] == [1]
    (again,) = recover(DatasetKey("demo", made), before[1:], SYSTEM)
    run_to_end(queue)
    again.refresh_from_db()
    assert (again.status, in_catalogue(made)) == ("done", before)
    assert broken() == []


def test_names_that_come_from_those_of_inputs_are_given_again(queue: ComputingQueue) -> None:
    dataset = catalogue_dataset("in.data", 4)
    for i, file in enumerate(dataset.files.order_by("id")):
        CatalogueFile.objects.filter(id=file.id).update(lfn=f"in.{'ab'[i % 2]}.{i}")
    items = reading("t", "in.data")["jobParameters"]
    items[1] = {**items[1], "value": "--out=t.${MIDDLENAME}.OUT.${SN}.txt"}
    named = {"addNthFieldToLFN": [2], "useFileAsSourceLFN": True, "nFilesPerJob": 1}
    old = done(queue, reading("t", "in.data", jobParameters=items, **named))
    before = in_catalogue("t.OUT")
    lost = [lfn for lfn in before if ".a." in lfn]
    assert len(lost) == 2, "two jobs of one middle name"
    (task,) = recover(DatasetKey("demo", "t.OUT"), lost, SYSTEM)
    run_to_end(queue)
    task.refresh_from_db()
    assert (task.status, in_catalogue("t.OUT")) == ("done", before)
    assert [used(task, lfn) for lfn in lost] == [used(old, lfn) for lfn in lost]
    assert broken() == []


def test_files_of_paired_secondary_datasets_come_with_them(queue: ComputingQueue) -> None:
    catalogue_dataset("in.data", 4)
    catalogue_dataset("low.data", 4)
    items = reading("t", "in.data")["jobParameters"]
    items.insert(1, {"type": "template", "param_type": "input", "dataset": "low.data", "value": "--low ${LOW/L}"})
    old = done(queue, reading("t", "in.data", jobParameters=items))
    before = in_catalogue("t.OUT")
    (task,) = recover(DatasetKey("demo", "t.OUT"), before[1:], SYSTEM)
    run_to_end(queue)
    assert in_catalogue("t.OUT") == before
    assert used(task, before[1]) == used(old, before[1])
    assert Dataset.objects.get(task=task, dataset_name="low.data").n_files == 2


@pytest.mark.parametrize("name", ["retry", "incexec"])
@pytest.mark.parametrize("made", [False, True])
def test_a_recovery_that_failed_is_not_run_again_where_another_makes_its_files(
    queue: ComputingQueue, name: str, made: bool
) -> None:
    catalogue_dataset("in.data", 4)
    done(queue, reading("t", "in.data", maxAttempt=1))
    (lfn, _) = in_catalogue("t.OUT")
    (first,) = recover(DatasetKey("demo", "t.OUT"), [lfn], SYSTEM)
    run_agents(2)
    end(take(queue), BAD)
    run_agents(2)
    (second,) = recover(DatasetKey("demo", "t.OUT"), [lfn], SYSTEM)
    if made:
        run_to_end(queue)
    command(first.id, name, "user:ada")
    run_to_end(queue)
    first.refresh_from_db()
    second.refresh_from_db()
    doing = "has made" if made else "makes"
    assert (first.status, second.status) == ("failed", "done")
    assert first.error_dialog == f"not retried: task {second.id} {doing} {lfn} again"
    assert not Job.objects.filter(task_id=first.id, ended_at=None).exists()
    assert File.objects.filter(lfn=lfn, status="finished", lost_at=None).count() == 1
    assert broken() == []
