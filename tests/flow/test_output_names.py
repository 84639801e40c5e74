"""Two tasks never write one name: who may write to a dataset, and how the files of several tasks in one dataset are numbered."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest
from django.db import connection, connections, transaction

from brokerage.ledger.lease import Lease
from brokerage.models import Job, JobResult
from brokerage.queries.invariants import check
from brokerage.queries.job_document import job_document
from brokerage.rules.dispatch.settlement import Report, ReportedOutput
from tests.api.people import Person, faults, person
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import BAD, end, run_agents, run_jobs, take, try_take
from workqueues.ledger.output_names import OutputConflict, claim_outputs
from workqueues.models import CatalogueDataset, CatalogueFile, File, Replica, Task
from workqueues.rules.refine import OutputName

pytestmark = pytest.mark.django_db(transaction=True)

THREADS = 4
OUT = {"type": "template", "param_type": "output", "dataset": "t1.EVT", "value": "--out=t1.EVT.${SN}.txt"}
LOG = {"type": "template", "param_type": "log", "dataset": "t1.log", "value": "t1.log.${SN}.tgz"}


@pytest.fixture
def ada() -> Person:
    return person("ada", ("demo", "submitter"))


@pytest.fixture
def bob() -> Person:
    return person("bob", ("demo", "submitter"))


def writing(name: str = "t1", **more: Any) -> dict[str, Any]:
    """A task of four jobs that writes to t1.EVT and t1.log, whatever it is called."""
    return parameters(name, **{"jobParameters": [OUT], "log": LOG, **more})


def sharing(name: str, **more: Any) -> dict[str, Any]:
    return writing(name, allowTaskDuplication=True, **more)


def nothing_is_wrong() -> bool:
    return [(f.invariant.name, f.examples) for f in check() if f.violations] == []


def states() -> set[str]:
    """Those of the datasets in the catalogue."""
    return set(CatalogueDataset.objects.values_list("state", flat=True))


def test_a_second_task_that_writes_the_same_datasets_is_refused(ada: Person) -> None:
    assert ada.submit(writing()).status_code == 201
    again = ada.submit(writing("other"))
    assert faults(again) == {("jobParameters[0].dataset", "unique"), ("log.dataset", "unique")}
    assert "allowTaskDuplication" in again.json()["detail"]
    assert faults(ada.submit(sharing("t3"))) == {("jobParameters[0].dataset", "unique"), ("log.dataset", "unique")}
    assert Task.objects.count() == 1


def test_a_dataset_stays_that_of_its_task_when_this_has_ended(ada: Person) -> None:
    (queue,) = grid("ALPHA")
    assert ada.submit(writing()).status_code == 201
    run_agents(3)
    run_jobs(queue)
    run_agents(2)
    assert Task.objects.get().status == "done"
    assert ada.submit(writing("other")).status_code == 422


def test_of_submissions_at_the_same_moment_one_is_taken(ada: Person) -> None:
    start = Barrier(THREADS)

    def submit(i: int) -> int:
        try:
            start.wait(10)
            return int(ada.submit(writing(f"task{i}")).status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(THREADS) as pool:
        answers = Counter(pool.map(submit, range(THREADS)))
    assert answers == {201: 1, 422: THREADS - 1}


def test_who_comes_at_the_same_moment_sees_the_task_that_was_first() -> None:
    first, second = submitted(sharing("first")), submitted(sharing("second"))
    output = [OutputName("t1.EVT", "t1.EVT.${SN}.txt")]
    begun = Event()

    def claim() -> str:
        try:
            with transaction.atomic():
                begun.set()
                claim_outputs(second, output, shared=True)
            return "claimed"
        except OutputConflict as conflict:
            return str(conflict)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            claim_outputs(first, output, shared=False)
            answer = pool.submit(claim)
            assert begun.wait(10)
            while not sessions_that_wait():
                assert not answer.done()
        assert answer.result(10).startswith(f"t1.EVT is written by task {first.id} of ada")


def sessions_that_wait() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return int(cursor.fetchone()[0])


def test_tasks_that_share_a_dataset_number_their_files_together(ada: Person) -> None:
    (queue,) = grid("ALPHA")
    assert [ada.submit(sharing(f"task{i}")).status_code for i in range(3)] == [201, 201, 201]
    run_agents(3)
    assert run_jobs(queue) == 12
    run_agents(2)
    assert set(Task.objects.values_list("status", flat=True)) == {"done"}
    names = sorted(File.objects.filter(type="output").values_list("lfn", flat=True))
    assert names == [f"t1.EVT.{n:06d}.txt" for n in range(1, 13)]
    assert sorted(CatalogueFile.objects.filter(dataset__name="t1.EVT").values_list("lfn", flat=True)) == names
    assert nothing_is_wrong()


def test_only_tasks_of_one_owner_share_a_dataset(ada: Person, bob: Person) -> None:
    assert ada.submit(sharing("t1")).status_code == 201
    refused = bob.submit(sharing("t2", userName="bob"))
    assert {rule for _, rule in faults(refused)} == {"unique"}


def test_other_names_in_a_shared_dataset_must_not_meet_those_that_are_there(ada: Person) -> None:
    grid("ALPHA")
    assert ada.submit(sharing("t1", log=None)).status_code == 201
    run_agents(1, ("refine",))
    meets = {**OUT, "value": "--out=t1.EVT.${SN/P}.txt"}
    assert faults(ada.submit(sharing("t2", jobParameters=[meets], log=None))) == {("jobParameters[0].value", "unique")}
    apart = {**OUT, "value": "--out=t1.NTUP.${SN}.txt"}
    assert ada.submit(sharing("t3", jobParameters=[apart], log=None)).status_code == 201


def test_the_dataset_of_a_broken_task_may_be_written_by_a_new_one_that_says_so(ada: Person) -> None:
    assert ada.submit(writing()).status_code == 201
    Task.objects.update(status="tobroken")
    run_agents(1, ("finish",))
    assert Task.objects.get().status == "broken"
    assert ada.submit(writing("t2")).status_code == 422
    assert ada.submit(sharing("t2")).status_code == 201


def test_a_dataset_that_no_task_wrote_is_not_written_to(ada: Person) -> None:
    catalogue_dataset("t1.EVT", 1)
    assert faults(ada.submit(sharing("t1"))) == {("jobParameters[0].dataset", "owner")}


def test_datasets_whose_names_are_alike_are_two(ada: Person) -> None:
    for n, name in enumerate(("t1/EVT", "t1_EVT", "t1.EVT")):
        assert ada.submit(parameters(f"t{n}", jobParameters=[{**OUT, "dataset": name}], log=None)).status_code == 201


def test_a_task_that_came_in_before_the_check_is_broken_with_the_reason() -> None:
    grid("ALPHA")
    submitted(writing())
    second = submitted(writing("other"))
    run_agents(2, ("refine", "finish"))
    second.refresh_from_db()
    assert second.status == "broken"
    assert "t1.EVT is written by task" in second.error_dialog


def test_a_task_that_came_in_before_the_check_is_a_parent_of_those_that_read_what_it_writes(ada: Person) -> None:
    grid("ALPHA")
    task = submitted(writing())
    run_agents(1, ("refine",))
    assert ada.submit(reading("t2", "t1.EVT")).json()["parents"] == [task.id]


def register(lfn: str, size: int, checksum: str, dataset: str = "t1.EVT") -> None:
    """A file of the dataset that somebody else brought in."""
    known = CatalogueDataset.objects.get(name=dataset)
    file = CatalogueFile.objects.create(dataset=known, lfn=lfn, fsize=size, checksum=checksum)
    Replica.objects.create(file=file, storage="BETA_DISK", path=str(Path(dataset) / lfn))


def test_a_name_that_is_registered_with_other_content_fails_the_job() -> None:
    (queue,) = grid("ALPHA")
    submitted(writing(nEvents=10))
    run_agents(3)
    leased = take(queue)
    register("t1.EVT.000001.txt", 99, "0000000b")
    assert end(leased) == "failed"
    result = JobResult.objects.get(job_id=leased.job_id)
    assert result.error_code == "OUTPUT_REGISTERED"
    assert "t1.EVT.000001.txt" in result.error_message
    run_agents(2)
    run_jobs(queue)
    run_agents(2)
    assert Task.objects.get().status == "done"
    assert Job.objects.filter(status="finished").count() == 1
    assert nothing_is_wrong()


def test_the_same_content_under_a_name_is_the_same_file() -> None:
    (queue,) = grid("ALPHA")
    submitted(writing(nEvents=10))
    run_agents(3)
    leased = take(queue)
    register("t1.EVT.000001.txt", 10, "0000000a")
    assert end(leased) == "finished"
    storages = Replica.objects.filter(file__lfn="t1.EVT.000001.txt").values_list("storage", flat=True)
    assert sorted(storages) == ["ALPHA_DISK", "BETA_DISK"]
    assert nothing_is_wrong()


def test_the_log_of_a_failed_job_is_no_copy_of_another_file_of_its_name() -> None:
    (queue,) = grid("ALPHA")
    submitted(writing(nEvents=10))
    run_agents(3)
    leased = take(queue)
    register("t1.log.000001.tgz", 99, "0000000b", "t1.log")
    log = ReportedOutput("t1.log.000001.tgz", 10, "0000000a", "ALPHA_DISK")
    assert end(leased, replace(BAD, outputs=[log], log_end="the end")) == "failed"
    assert list(Replica.objects.filter(file__lfn=log.lfn).values_list("storage", flat=True)) == ["BETA_DISK"]
    assert File.objects.get(lfn=log.lfn).status == "failed"
    assert JobResult.objects.get(job_id=leased.job_id).log_end == "the end"


def test_a_shared_dataset_is_open_while_one_of_its_tasks_writes(ada: Person) -> None:
    (queue,) = grid("ALPHA")
    assert [ada.submit(sharing(name)).status_code for name in ("first", "second")] == [201, 201]
    run_agents(3)
    first = Task.objects.get(task_name="first")
    later = [leased for leased in iter(lambda: try_take(queue), None) if leased.task_id != first.id or end(leased) != "finished"]
    run_agents(2)
    first.refresh_from_db()
    assert first.status == "done"
    assert set(CatalogueDataset.objects.values_list("name", "state")) == {("t1.EVT", "open"), ("t1.log", "open")}
    for leased in later:
        end(leased)
    run_agents(2)
    assert set(Task.objects.values_list("status", flat=True)) == {"done"}
    assert set(CatalogueDataset.objects.values_list("name", "state")) == {("t1.EVT", "closed"), ("t1.log", "closed")}


def test_the_datasets_of_an_aborted_task_are_closed(ada: Person) -> None:
    grid("ALPHA")
    task_id = ada.submit(writing()).json()["id"]
    run_agents(2)
    assert set(CatalogueDataset.objects.values_list("state", flat=True)) == {"open"}
    assert ada.post(f"tasks/{task_id}/kill/").status_code == 202
    run_agents(2)
    assert Task.objects.get().status == "aborted"
    assert set(CatalogueDataset.objects.values_list("state", flat=True)) == {"closed"}


def test_a_retry_opens_the_datasets_again_until_its_new_end(ada: Person) -> None:
    (queue,) = grid("ALPHA")
    task_id = ada.submit(writing(nEvents=20, maxAttempt=1)).json()["id"]
    run_agents(3)
    end(take(queue))
    run_jobs(queue, BAD)
    run_agents(2)
    assert Task.objects.get().status == "finished"
    assert states() == {"closed"}
    assert ada.post(f"tasks/{task_id}/retry/").status_code == 202
    run_agents(2)
    assert Task.objects.get().status == "running"
    assert states() == {"open"}
    assert run_jobs(queue) == 1
    run_agents(2)
    assert Task.objects.get().status == "done"
    assert states() == {"closed"}
    assert ada.post(f"tasks/{task_id}/retry/").status_code == 409
    assert nothing_is_wrong()


def test_the_retry_of_a_task_whose_dataset_is_now_somebody_elses_says_so(ada: Person) -> None:
    (queue,) = grid("ALPHA")
    task_id = ada.submit(writing(nEvents=10, maxAttempt=1)).json()["id"]
    run_agents(3)
    run_jobs(queue, BAD)
    run_agents(2)
    CatalogueDataset.objects.update(owner="bob")
    assert ada.post(f"tasks/{task_id}/retry/").status_code == 202
    run_agents(2)
    task = Task.objects.get()
    assert task.status == "failed"
    assert task.error_dialog.startswith("not retried: the dataset t1.EVT of VO demo belongs to another user than ada")
    assert set(File.objects.filter(type="pseudo_input").values_list("status", "max_attempt")) == {("failed", 1)}
    assert states() == {"closed"}


def test_two_jobs_that_report_one_name_at_once_do_not_both_finish(ada: Person) -> None:
    """What the numbering forbids, made by hand: the ledger is the last to see it."""
    queues = grid("ALPHA", "BETA")
    submitted(sharing("t1", nEvents=10))
    submitted(sharing("t2", nEvents=10))
    run_agents(3)
    leases = list[Lease]()
    for queue in queues:
        while len(leases) < 2 and Job.objects.filter(computing_queue=queue, status="activated").exists():
            leases.append(take(queue))
    assert len(leases) == 2
    File.objects.filter(type="output").update(lfn="t1.EVT.twice.txt")
    start = Barrier(2)

    def report(i: int) -> str:
        outputs = [
            ReportedOutput(o["lfn"], 10 + i, f"0000000{i}", o["storage"]) for o in job_document(leases[i].job_id)["outputs"]
        ]
        try:
            start.wait(10)
            return end(leases[i], Report("finished", outputs))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(report, range(2))) == ["failed", "finished"]
