"""What stands together stays together: a master file keeps its sequence number and the files beside it through every retry and
every new cut, and their tries never end it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from brokerage.ledger.lease import Lease
from brokerage.models import JobInput
from brokerage.queries.invariants import check
from brokerage.queries.task_status import task_status
from brokerage.rules.dispatch.settlement import Report
from brokerage.rules.explain.task_status_text import reasons
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import BAD, end, let_confirm, let_retry, run_agents, run_jobs, take, try_take
from workqueues.models import CatalogueFile, Dataset, File, Task

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def failures_close_no_queue(transactional_db: None) -> None:
    """The analysis policy would leave out a queue at which jobs of the task failed."""
    set_override("core", "POLICY_analysis", "generic", who="ada", why="test")


IN: dict[str, Any] = {"type": "template", "param_type": "input"}
SEQUENCE = {"type": "template", "param_type": "pseudo_input", "dataset": "seq_number", "value": "--run=${SEQNUMBER}"}
OUT = {"type": "template", "param_type": "output", "dataset": "t.OUT", "value": "--out=t.OUT.${SN}.txt"}
STOPPED = Report("failed", error_code="PILOT_STOPPED")


def overlaid(n: int, *items: dict[str, Any], background: str = "", **more: Any) -> Task:
    """A task on `n` files, with as many background files beside them, and these items; ready for its first jobs."""
    catalogue_dataset("signal", n)
    catalogue_dataset("minbias", n)
    inputs = [
        {**IN, "dataset": "signal", "value": "--in=${IN/L}", "attributes": background},
        {**IN, "dataset": "minbias", "value": "--low=${LOW/L}", "attributes": background},
    ]
    task = submitted(reading("t", "signal", jobParameters=[*inputs, *items, OUT], **more))
    run_agents(1, ("refine", "feed", "assign"))
    return task


def rows_of_jobs(task: Task) -> dict[int, dict[str, list[str]]]:
    """Job -> names of its inputs by dataset, in the order of their ids."""
    names = dict(Dataset.objects.filter(task_id=task.id).values_list("id", "dataset_name"))
    lfns = dict(File.objects.filter(task_id=task.id).values_list("id", "lfn"))
    jobs: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for job_id, file_id, dataset_id in JobInput.objects.order_by("job_id", "file_id").values_list(
        "job_id", "file_id", "dataset_id"
    ):
        jobs[job_id][names[dataset_id]].append(lfns[file_id])
    return jobs


def cut_anew(task: Task, n_files: int) -> None:
    """From now on jobs of so many files are made."""
    words = Task.objects.values_list("split_rule", flat=True).get(id=task.id).split(",")
    rule = ",".join([*(word for word in words if not word.startswith("NF=")), f"NF={n_files}"])
    Task.objects.filter(id=task.id).update(split_rule=rule)


def kept_together(jobs: Sequence[dict[str, list[str]]]) -> bool:
    """Whether the jobs, in the order in which they were made, got what stands beside their files.

    The first job of a file binds what it gets; where no file of a job has a number yet, it gets one that no job had, for its
    lowest file; else the number of the lowest file that has one.
    """
    partner: dict[str, str] = {}
    number: dict[str, str] = {}
    for job in jobs:
        fresh = sorted(set(job["minbias"]) - {partner[file] for file in job["signal"] if file in partner})
        if set(fresh) & set(partner.values()):
            return False
        partner |= zip([file for file in job["signal"] if file not in partner], fresh, strict=True)
        (record,) = job["pseudo_seq_number"]
        known = next((number[file] for file in job["signal"] if file in number), "")
        if not known and record not in number.values():
            number[job["signal"][0]] = known = record
        if record != known:
            return False
    return True


@pytest.mark.parametrize("seed", range(2, 6))
def test_random_campaigns_keep_numbers_and_files_with_their_master_file(seed: int) -> None:
    dice = Random(seed)
    (queue,) = grid("ALPHA")
    task = overlaid(6, SEQUENCE, background="indexConsistent" if seed % 2 else "", maxAttempt=5, nFilesPerJob=dice.randint(1, 3))
    running = list[Lease]()
    for _ in range(16):
        run_agent("generate", looked=True)
        running += iter(lambda: try_take(queue), None)
        for leased in [leased for leased in running if dice.random() < 0.6]:
            running.remove(leased)
            end(leased, dice.choice([BAD, BAD, STOPPED, None]))
        cut_anew(task, dice.randint(1, 3))
        let_retry()
    for leased in running:
        end(leased, BAD)
    for _ in range(6):
        run_agents(1, ("generate",))
        run_jobs(queue, BAD)
    run_agents(2)
    task.refresh_from_db()
    assert task.status in ("done", "finished", "failed")
    jobs = rows_of_jobs(task)
    assert kept_together(list(jobs.values()))
    masters = File.objects.filter(task_id=task.id, dataset__dataset_name="signal")
    assert {(f.status, f.status == "finished" or f.attempt_nr == 5) for f in masters} <= {("finished", True), ("failed", True)}
    assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []


def test_a_retried_job_has_its_number_and_its_file_whichever_others_are_free() -> None:
    (queue,) = grid("ALPHA")
    task = overlaid(4, SEQUENCE, nFilesPerJob=1)
    run_agents(1, ("generate",))
    leases = [take(queue) for _ in range(4)]
    for leased in leases[1:3]:
        end(leased, BAD)
    File.objects.filter(task_id=task.id, lfn="signal.000001").update(held="reported missing")
    run_agents(1, ("generate",))
    retried = list(rows_of_jobs(task).values())[4]
    assert {name: files for name, files in retried.items() if name != "pseudo_seq_number"} == {
        "signal": ["signal.000002"],
        "minbias": ["minbias.000002"],
    }
    assert retried["pseudo_seq_number"] == ["pseudo_000003"]


def test_a_job_that_is_split_keeps_its_number_for_the_first_and_joined_ones_the_lowest() -> None:
    (queue,) = grid("ALPHA")
    task = overlaid(4, SEQUENCE, nFilesPerJob=2, maxAttempt=9)
    for n_files in (2, 1, 2):
        cut_anew(task, n_files)
        run_agents(1, ("generate",))
        run_jobs(queue, BAD)
    jobs = list(rows_of_jobs(task).values())
    assert [(job["signal"][0][-1], job["pseudo_seq_number"][0][-1]) for job in jobs] == [
        ("0", "1"), ("2", "2"), ("0", "1"), ("1", "3"), ("2", "2"), ("3", "4"), ("0", "1"), ("2", "2"),
    ]  # fmt: skip


def test_files_that_belong_together_by_number_do_so_from_the_first_job_on() -> None:
    grid("ALPHA")
    task = overlaid(3, SEQUENCE, background="indexConsistent", nFilesPerJob=1)
    File.objects.filter(task_id=task.id, lfn="signal.000000").update(held="reported missing")
    run_agents(1, ("generate",))
    assert [(job["signal"], job["minbias"]) for job in rows_of_jobs(task).values()] == [
        (["signal.000001"], ["minbias.000001"]),
        (["signal.000002"], ["minbias.000002"]),
    ]


def test_a_file_waits_for_its_partner_and_is_given_up_with_it() -> None:
    (queue,) = grid("ALPHA")
    task = overlaid(2, background="indexConsistent", nFilesPerJob=1)
    run_agents(1, ("generate",))
    first = take(queue)
    end(first, Report("failed", missing_inputs=["minbias.000000"], error_code="INPUT"))
    let_retry()
    run_agent("generate", looked=True)
    assert len(rows_of_jobs(task)) == 2, "no job is made with another partner"
    due = File.objects.get(task_id=task.id, lfn="signal.000000").retry_due
    assert due is not None
    waits = "1 input file waits for a partner in another dataset that is held back"
    words = f"{waits}; the next look is due at {due:%Y-%m-%d %H:%M:%S} UTC."
    assert [r.message for r in reasons(task_status(Task.objects.get(id=task.id))) if r.kind in ("retry", "partner")] == [words]
    File.objects.filter(task_id=task.id, lfn="minbias.000000").update(status="lost", held="")
    CatalogueFile.objects.filter(lfn="minbias.000000").delete()
    let_confirm()
    run_agents(2)
    assert File.objects.get(task_id=task.id, lfn="signal.000000").status == "failed"
    run_jobs(queue)
    run_agents(2)
    task.refresh_from_db()
    assert task.status == "finished"


def test_numbers_of_a_sequence_suffice_however_events_are_cut() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("signal", 2)  # 10 events a file
    items = [{**IN, "dataset": "signal", "value": "--in=${IN/L}"}, SEQUENCE, OUT]
    task = submitted(reading("t", "signal", jobParameters=items, nFilesPerJob=None, nEventsPerJob=7, maxAttempt=9))
    run_agents(1, ("refine", "feed", "assign"))
    numbers: dict[int, list[str]] = {}
    n_jobs = 0
    for n_events in (7, 3, 7, 2, 7):
        rule = Task.objects.get(id=task.id).split_rule.split(",")
        Task.objects.filter(id=task.id).update(split_rule=",".join(f"NE={n_events}" if w.startswith("NE=") else w for w in rule))
        run_agents(1, ("generate",))
        made = [job["pseudo_seq_number"][0] for job in list(rows_of_jobs(task).values())[n_jobs:]]
        n_jobs += len(made)
        numbers.setdefault(n_events, made)
        if n_events == 7:
            assert made == numbers[7], "the same events have the same numbers again"
        run_jobs(queue, BAD)
    assert all(len(set(made)) == len(made) for made in numbers.values())
