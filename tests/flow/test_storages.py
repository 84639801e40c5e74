"""Storage endpoints that go away and come back: nothing is lost, no try is counted, and the work goes on by itself."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from brokerage.agents.decision_cycle import DecisionCycle
from brokerage.models import ComputingQueue, Job, JobResult, Site, StorageEndpoint
from brokerage.queries.job_document import job_document
from brokerage.queries.task_status import task_status
from brokerage.queries.world import load_grid
from brokerage.rules.decision.assembly import DecisionRequest, TaskDecision
from brokerage.rules.dispatch.settlement import Report, ReportedOutput
from brokerage.rules.explain.task_status_text import reasons
from tests.builders import grid, parameters, reading, submitted
from tests.flow.steps import BAD, end, good, let_confirm, mark_storages, run_agents, run_jobs, take, try_take
from tests.flow.test_bad_inputs import PRODUCTION, with_files_on_disk
from tests.flow.test_events import all_taken, by_events, faults
from workqueues.ledger.commands import command
from workqueues.models import CatalogueFile, Dataset, File, FileChange, Task

pytestmark = pytest.mark.django_db

FIRST = "in.data.000000"
DOWN = Report("failed", error_code="STORAGE_DOWN", error_message="storage ALPHA_DISK is down: x", down_storages=["ALPHA_DISK"])
MISSING = Report("failed", missing_inputs=[FIRST], error_code="INPUT_MISSING", error_message=f"{FIRST}: at no source")


@pytest.fixture
def queue(tmp_path: Path) -> ComputingQueue:
    """A queue whose storage has the files of in.data and is marked."""
    (made,) = grid("ALPHA", path=str(tmp_path))
    with_files_on_disk(tmp_path, 4)
    mark_storages(tmp_path)
    return made


def covered(folder: Path, how: str) -> None:
    """The storage goes away; what is left in its place."""
    (folder / "ALPHA").rename(folder / "away")
    if how == "bare mount point":
        (folder / "ALPHA").mkdir()
    elif how == "plain file":
        (folder / "ALPHA").write_text("not a folder")


def back(folder: Path) -> None:
    """The storage is back."""
    root = folder / "ALPHA"
    if root.is_dir():
        root.rmdir()
    root.unlink(missing_ok=True)
    (folder / "away").rename(root)


def inputs(task: Task) -> list[tuple[str, int, int]]:
    rows = File.objects.filter(task_id=task.id, type="input").order_by("id")
    return list(rows.values_list("status", "attempt_nr", "failed_attempt"))


def state() -> tuple[str, str]:
    return StorageEndpoint.objects.values_list("root_state", "root_fault").get()


def finish(queue: ComputingQueue, task: Task) -> str:
    """Let everything end that can."""
    for _ in range(4):
        let_confirm()
        run_agents()
        run_jobs(queue)
    run_agents()
    task.refresh_from_db()
    return task.status


@pytest.mark.parametrize("how", ["nothing", "bare mount point", "plain file"])
def test_files_of_a_storage_that_is_away_are_held_and_used_when_it_is_back(
    queue: ComputingQueue, tmp_path: Path, how: str
) -> None:
    task = submitted(reading("t", "in.data", **PRODUCTION))
    run_agents()
    assert state() == ("up", "")
    covered(tmp_path, how)
    assert end(take(queue), DOWN) == "closed"
    untold = Report("failed", missing_inputs=["in.data.000002", "in.data.000003"], error_code="INPUT_MISSING")
    assert end(take(queue), untold) == "closed", "a pilot of before, which knows no marks"
    assert Job.objects.filter(sub_status="storage_down").count() == 1
    for _ in range(3):
        let_confirm()
        run_agents()
        assert {status for status, _, _ in inputs(task)} == {"ready"}, "nothing is concluded"
        assert try_take(queue) is None, "no job is made for files that wait"
    assert state()[0] == "down"
    assert "storage ALPHA_DISK is down" in File.objects.filter(task_id=task.id, held_storage="ALPHA_DISK").first().held  # type: ignore[union-attr]
    back(tmp_path)
    assert finish(queue, task) == "done"
    assert state() == ("up", "")
    first = [(status, tries, failures) for status, tries, failures in inputs(task)]
    assert sorted(first) == [("finished", 1, 0)] * 2 + [("finished", 2, 0)] * 2, "a storage that is down is no try"


@pytest.mark.parametrize("nucleus", [True, False])
def test_a_task_that_found_no_place_since_a_storage_was_down_looks_again_when_it_is_back(
    queue: ComputingQueue, tmp_path: Path, nucleus: bool
) -> None:
    Site.objects.update(nucleus=nucleus)
    StorageEndpoint.objects.update(free_gb=50_000)
    covered(tmp_path, "nothing")
    run_agents(1, ("storage",))
    assert state()[0] == "down"
    task = submitted(reading("t", "in.data", **PRODUCTION))
    run_agents()
    task.refresh_from_db()
    assert task.status != "running"
    assert task.next_look_at is not None
    back(tmp_path)
    run_agents(4)
    task.refresh_from_db()
    assert task.status == "running", task.error_dialog


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("nucleus", [True, False])
def test_a_storage_that_comes_back_while_a_task_is_judged_without_it_is_not_missed(
    queue: ComputingQueue, tmp_path: Path, nucleus: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    Site.objects.update(nucleus=nucleus)
    StorageEndpoint.objects.update(free_gb=50_000)
    covered(tmp_path, "nothing")
    run_agents(1, ("storage",))
    task = submitted(reading("t", "in.data", **PRODUCTION))
    run_agents(1, ("refine", "feed"))
    judge = DecisionCycle.decide

    def slowly(cycle: DecisionCycle, request: DecisionRequest) -> TaskDecision[Any]:
        decision = judge(cycle, request)
        back(tmp_path)
        run_agents(1, ("storage",))
        return decision

    with monkeypatch.context() as patch:
        patch.setattr(DecisionCycle, "decide", slowly)
        run_agents(1, ("assign",) if nucleus else ("assign", "generate"))
    run_agents(2, ("wake", "assign", "generate"))
    task.refresh_from_db()
    assert task.status == "running", task.error_dialog


def test_a_job_that_cannot_write_waits_for_the_storage_too(queue: ComputingQueue, tmp_path: Path) -> None:
    task = submitted(parameters(nEvents=20))
    run_agents()
    covered(tmp_path, "nothing")
    assert end(take(queue), DOWN) == "closed"
    let_confirm()
    run_agents()
    held = File.objects.filter(task_id=task.id, held_storage="ALPHA_DISK").order_by("id")
    rows = [("pseudo_input", "ready", 0), ("random_seed", "ready", 0)]
    assert list(held.values_list("type", "status", "attempt_nr")) == rows
    back(tmp_path)
    assert finish(queue, task) == "done"


def test_events_of_a_file_wait_for_its_storage_and_keep_their_tries(queue: ComputingQueue, tmp_path: Path) -> None:
    task = by_events(5, **PRODUCTION, maxAttempt=1)
    run_agents()
    covered(tmp_path, "bare mount point")
    first, *others = all_taken(queue)
    assert end(first, DOWN) == "closed"
    let_confirm()
    run_agents()
    assert faults() == []
    back(tmp_path)
    for job in others:
        end(job)
    assert finish(queue, task) == "done"
    assert faults() == []
    assert max(tries for _, tries, _ in inputs(task)) == 1


def test_who_says_again_and_again_that_a_storage_is_down_which_is_up_gets_the_file_ever_more_rarely(
    queue: ComputingQueue,
) -> None:
    task = submitted(reading("t", "in.data", **PRODUCTION, nFilesPerJob=4))
    run_agents()
    for seconds in (30, 60, 120):
        end(take(queue), DOWN)
        file = File.objects.get(lfn=FIRST)
        assert file.look_due is not None
        assert seconds - 10 < (file.look_due - datetime.now(UTC)).total_seconds() <= seconds
        let_confirm()
        run_agents()
    end(take(queue), DOWN)
    told = "storage ALPHA_DISK was down at ALPHA, told 4 times, and found up 3 times"
    task.refresh_from_db()
    assert any(told in reason.message for reason in reasons(task_status(task)))
    assert {tries for _, tries, _ in inputs(task)} == {0}, "it is no try all the same"


def test_a_storage_that_the_job_was_not_given_is_no_excuse(queue: ComputingQueue) -> None:
    submitted(parameters(nEvents=10))
    run_agents()
    held = take(queue)
    assert end(held, Report("failed", error_code="STORAGE_DOWN", down_storages=["BETA_DISK"])) == "failed"


def test_a_lost_file_that_reappears_is_found_again(queue: ComputingQueue, tmp_path: Path) -> None:
    task = submitted(reading("t", "in.data", **PRODUCTION))
    run_agents()
    (tmp_path / "ALPHA" / FIRST).rename(tmp_path / FIRST)
    end(take(queue), MISSING)
    for _ in range(2):
        run_agents()
        let_confirm()
    run_agents()
    assert File.objects.get(lfn=FIRST).status == "lost"
    dataset = Dataset.objects.get(type="input")
    assert (dataset.n_files_missing, dataset.n_files_to_be_used) == (1, 3)
    (tmp_path / FIRST).rename(tmp_path / "ALPHA" / FIRST)
    let_confirm()
    assert finish(queue, task) == "done"
    dataset.refresh_from_db()
    assert (dataset.n_files_missing, dataset.n_files_to_be_used, dataset.n_files_finished) == (0, 4, 4)
    assert FileChange.objects.get(old="lost").why == "it is there again"


@pytest.mark.parametrize("again", ["retry", "incexec"])
def test_a_task_that_is_run_again_looks_for_lost_files(queue: ComputingQueue, tmp_path: Path, again: str) -> None:
    task = submitted(reading("t", "in.data", **PRODUCTION, maxAttempt=1))
    run_agents()
    (tmp_path / "ALPHA" / FIRST).rename(tmp_path / FIRST)
    File.objects.filter(lfn=FIRST).update(max_attempt=9)
    end(take(queue), MISSING)
    run_agents()
    let_confirm()
    end(take(queue), BAD)
    finish(queue, task)
    assert (task.status, File.objects.get(lfn=FIRST).status) == ("failed", "lost")
    command(task.id, again, "user:ada", "")
    run_agents(3)
    assert File.objects.get(lfn=FIRST).status == "lost", "it still is"
    assert finish(queue, task) == "finished"
    (tmp_path / FIRST).rename(tmp_path / "ALPHA" / FIRST)
    command(task.id, again, "user:ada", "")
    assert finish(queue, task) == "done"


def test_nothing_is_concluded_from_a_storage_that_was_never_marked(queue: ComputingQueue, tmp_path: Path) -> None:
    StorageEndpoint.objects.update(mark="")
    task = submitted(reading("t", "in.data", **PRODUCTION, nFilesPerJob=4, maxAttempt=2))
    run_agents()
    (tmp_path / "ALPHA" / FIRST).unlink()
    for _ in range(2):
        end(take(queue), MISSING)
        run_agents()
    finish(queue, task)
    assert File.objects.get(lfn=FIRST).status == "failed", "its tries are used up"
    assert "was never marked" in FileChange.objects.filter(new="ready").latest("id").why
    assert state()[0] == "unmarked"


def test_the_brokers_see_the_state_of_a_storage(queue: ComputingQueue) -> None:
    def accesses(root_state: str) -> set[str]:
        StorageEndpoint.objects.update(root_state=root_state)
        (storage,) = load_grid().storages
        return {access for access, is_on in storage.columns["status"].items() if is_on == "OFF"}

    assert accesses("up") == accesses("unmarked") == set()
    assert accesses("read only") == accesses("full") == {"write_lan", "write_wan"}
    assert accesses("down") == {"read_lan", "read_wan", "write_lan", "write_wan"}


def reported(queue: ComputingQueue, **changes: object) -> JobResult:
    """The result of a job that reports one output otherwise than it is."""
    held = take(queue)
    report = good(held.job_id)
    first = report.outputs[0]
    values = {"lfn": first.lfn, "size": first.size, "checksum": first.checksum, "storage": first.storage, **changes}
    end(held, Report("finished", [ReportedOutput(**values), *report.outputs[1:]]))  # type: ignore[arg-type]
    return JobResult.objects.get(job_id=held.job_id)


def test_an_output_at_a_storage_that_the_job_was_not_given_fails_the_job(queue: ComputingQueue) -> None:
    submitted(parameters(nEvents=30))
    run_agents()
    result = reported(queue, storage="GAMMA_DISK")
    assert result.error_code == "OUTPUT_MISPLACED"
    assert "GAMMA_DISK" in result.error_message
    assert reported(queue, storage="NO_SUCH<b>").error_code == "OUTPUT_MISPLACED"
    assert reported(queue, size=2**53).error_code == "OUTPUT_TOO_LARGE"
    assert not CatalogueFile.objects.exclude(dataset__name="in.data").exists()


def test_a_name_that_an_earlier_try_left_behind_is_no_failure_of_the_input(queue: ComputingQueue) -> None:
    task = submitted(reading("t", "in.data", **PRODUCTION, maxAttempt=3, maxFailure=1))
    run_agents()
    held = take(queue)
    first = {o["lfn"] for o in job_document(held.job_id)["outputs"]}
    assert end(held, Report("failed", error_code="OUTPUT_EXISTS", error_message="t.OUT stands on ALPHA_DISK already")) == "closed"
    run_agents()
    again = [o["lfn"] for job in Job.objects.filter(status="activated") for o in job_document(job.id)["outputs"]]
    assert not first & set(again), "the next try has other names"
    assert finish(queue, task) == "done"


def test_the_words_of_the_pilot_about_an_input_stand_in_the_result(queue: ComputingQueue) -> None:
    submitted(reading("t", "in.data", **PRODUCTION))
    run_agents()
    held = take(queue)
    words = f"{FIRST}: has 23 bytes, registered are 45"
    end(held, Report("failed", corrupt_inputs=[FIRST], error_code="INPUT_CORRUPT", error_message=words))
    assert JobResult.objects.get().error_message == f"inputs that could not be read: {words}"


def test_a_seed_whose_job_waits_for_a_storage_is_not_given_to_another_job(queue: ComputingQueue) -> None:
    task = submitted(parameters("seeds", nEvents=30))
    run_agents()
    assert end(take(queue), DOWN) == "closed"
    assert end(take(queue), BAD) == "failed"
    run_agents(1, ("generate",))
    assert not File.objects.filter(status="running").exclude(held="").exists()
    assert finish(queue, task) == "done"
