"""Scouts: a few first jobs of a task measure what the others need, and end the task where going on would be a waste."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from broker_site.foundation.kernel.machine import NotAllowed
from brokerage.ledger.expiry import kill_jobs
from brokerage.models import ComputingQueue, Job, JobResult, JobSpec
from brokerage.queries.jobs import live_jobs
from brokerage.queries.task_status import task_status
from brokerage.rules.dispatch.settlement import Report
from brokerage.rules.explain.task_status_text import headline
from brokerage.rules.facts.job_kind import JobKind
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import BAD, end, good, run_agents, run_jobs, take
from workqueues.ledger.commands import command
from workqueues.models import Task, TaskChange
from workqueues.rules.jobs.split_rule import parse

pytestmark = pytest.mark.django_db

MANY: dict[str, Any] = {"nEvents": 1000, "nEventsPerJob": 10, "skipScout": None}


def scouting(**more: Any) -> tuple[Task, ComputingQueue]:
    """A task of a hundred jobs whose scouts wait for pilots."""
    (queue,) = grid("ALPHA")
    task = submitted(parameters("t", **{**MANY, **more}))
    run_agents()
    task.refresh_from_db()
    return task, queue


def kinds() -> list[tuple[int, str]]:
    return list(Job.objects.order_by("id").values_list("kind", "status"))


def measured(job_id: int, **metrics: Any) -> Report:
    """A good report that tells what the payload used."""
    report = good(job_id)
    return Report("finished", report.outputs, metrics=metrics)


def run_scouts(queue: ComputingQueue, n: int, **metrics: Any) -> None:
    for _ in range(n):
        leased = take(queue)
        end(leased, measured(leased.job_id, **metrics))


def last_run(seconds: float) -> None:
    """All finished jobs took so long."""
    now = timezone.now()
    JobResult.objects.update(end_time=now, start_time=now - timedelta(seconds=seconds))


def states(task: Task) -> list[str]:
    return list(TaskChange.objects.filter(task_id=task.id).order_by("id").values_list("new", flat=True))


def test_ten_scouts_are_made_and_no_more_until_they_have_ended() -> None:
    task, queue = scouting()
    assert task.status == "scouting"
    assert kinds() == [(JobKind.SCOUT, "activated")] * 10
    run_agents(4)
    assert Job.objects.count() == 10
    assert set(Job.objects.values_list("priority", flat=True)) == {901}, "before the jobs of other tasks"
    task.refresh_from_db()
    end(take(queue))
    end(take(queue), BAD)
    assert headline(task_status(task)) == (
        "Scouting: its other jobs are made once its first ones, the scouts, have shown what they need; "
        "1 of 10 scouts finished, 8 under way, 1 try failed"
    )


def test_then_all_others_are_made() -> None:
    task, queue = scouting()
    run_jobs(queue)
    run_agents(3)
    task.refresh_from_db()
    assert task.status == "running"
    assert states(task)[-3:] == ["scouting", "scouted", "running"]
    assert Job.objects.filter(kind=JobKind.NORMAL).exists()
    rounds = 0
    while task.status != "done" and rounds < 20:  # a round of agents that took its time may make no jobs
        run_jobs(queue)
        run_agents()
        task.refresh_from_db()
        rounds += 1
    assert task.status == "done"
    assert Job.objects.count() == 100
    assert Job.objects.filter(kind=JobKind.SCOUT).count() == 10


@pytest.mark.parametrize("more", [{"nEvents": 190}, {"skipScout": True}])
def test_small_tasks_and_those_that_want_none_have_no_scouts(more: dict[str, Any]) -> None:
    task, _ = scouting(**more)
    assert task.status == "running"
    assert {kind for kind, _ in kinds()} == {JobKind.NORMAL}
    assert not parse(task.split_rule).scouting


def test_a_task_says_how_many_scouts_it_wants() -> None:
    task, queue = scouting(nScouts=3)
    assert len(kinds()) == 3
    run_jobs(queue)
    run_agents(3)
    task.refresh_from_db()
    assert task.status == "running"


def test_a_scout_of_a_task_that_says_nothing_has_one_file() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 100, size=3 * 10**9)
    submitted(reading("t", "in.data", nFilesPerJob=None, nGBPerJob=10, skipScout=None))
    run_agents()
    assert [spec.n_input_files for spec in JobSpec.objects.all()] == [1] * 10
    run_jobs(queue)
    run_agents(3)
    assert {spec.n_input_files for spec in JobSpec.objects.filter(job__kind=JobKind.NORMAL)} == {2}, "cut by nGBPerJob"


def test_needs_are_measured_when_half_have_finished_and_at_the_end() -> None:
    task, queue = scouting(ramCount=2000)
    run_scouts(queue, 5, max_pss_mb=700, cpu_s=10)
    last_run(1600)
    run_agents(1)
    task.refresh_from_db()
    assert (task.status, task.ram_count) == ("scouting", 700)
    assert task.cpu_time == pytest.approx((1600 - 600) * 10 * 0.9 / 10 * 1.5)
    assert Job.objects.filter(kind=JobKind.SCOUT).count() == 10
    run_scouts(queue, 5, max_pss_mb=900, cpu_s=10)
    last_run(1600)
    run_agents(3)
    task.refresh_from_db()
    assert (task.status, task.ram_count) == ("running", 900)
    asked = JobSpec.objects.filter(job__kind=JobKind.NORMAL).values_list("ram_mb", flat=True)
    assert set(asked) == {900}, "900 MB x 0.9, rounded up to 100 MB"


def test_what_was_not_measured_or_cannot_be_true_says_nothing() -> None:
    task, queue = scouting(ramCount=2000, cpuTime=3)
    run_scouts(queue, 10, max_pss_mb=-5, cpu_s="much", work_mb=1e300)
    run_agents(3)
    task.refresh_from_db()
    assert (task.status, task.ram_count, task.cpu_time) == ("running", 2000, 3)


def test_a_scout_that_fails_is_made_again_from_whatever_is_free() -> None:
    task, queue = scouting()
    end(take(queue), BAD)
    run_scouts(queue, 9)
    run_agents(2)
    assert Job.objects.filter(kind=JobKind.SCOUT, ended_at=None).count() == 1
    run_jobs(queue)
    run_agents(3)
    task.refresh_from_db()
    assert task.status == "running"


def test_a_task_none_of_whose_scouts_succeeds_is_broken() -> None:
    task, queue = scouting(nScouts=2, maxAttempt=2)
    for _ in range(3):
        run_jobs(queue, BAD)
        run_agents()
    task.refresh_from_db()
    assert task.status == "broken"
    assert task.error_dialog == "none of its first jobs succeeded, 4 failed"
    assert Job.objects.count() == 4


def test_too_few_successes_break_the_task_of_a_user() -> None:
    task, queue = scouting(nScouts=2, maxAttempt=1, scoutSuccessRate=8)
    run_scouts(queue, 1)
    for _ in range(2):
        end(take(queue), BAD)
        run_agents()
    task.refresh_from_db()
    assert task.status == "broken"
    assert "33% of its first jobs succeeded, at least 80 % must" in task.error_dialog


@pytest.mark.parametrize("unit", [{"cpuTime": 100}, {"cpuTime": 100_000, "cpuTimeUnit": "mHS06sPerEvent"}])
def test_scouts_that_take_twice_the_defined_time_exhaust_a_production_task_and_a_retry_goes_on(unit: dict[str, Any]) -> None:
    (queue,) = grid("ALPHA")
    task = submitted(parameters("t", **{**MANY, "prodSourceLabel": "managed", "cpuEfficiency": 100, **unit}))
    run_agents(3)
    assert len(kinds()) == 10
    run_scouts(queue, 10)
    last_run(600 + 140)  # 140 s x 10 HS06 / 10 events x 1.5 = 210 a job
    run_agents(3)
    task.refresh_from_db()
    assert task.status == "exhausted"
    assert task.error_dialog == "its first jobs took 210 HS06 s an event, more than 2 times the 100 that it defines"
    command(task.id, "retry", "user:ada")
    run_agents(3)
    task.refresh_from_db()
    assert task.status == "running"
    assert Job.objects.filter(kind=JobKind.NORMAL).exists()


def test_short_scouts_exhaust_a_task_of_a_user_whose_files_make_many_jobs_by_their_size() -> None:
    (queue,) = grid("ALPHA")
    catalogue_dataset("in.data", 1200, size=9 * 10**9)
    task = submitted(reading("t", "in.data", nFilesPerJob=None, nGBPerJob=10, skipScout=None))
    run_agents(3)
    run_scouts(queue, 10)
    last_run(60)
    run_agents(3)
    task.refresh_from_db()
    assert task.status == "exhausted", "1,190 jobs of one file each would follow"
    assert task.error_dialog.startswith("10 of its first jobs took less than 4 min, and about 1071 more would come")


def test_low_efficiency_exhausts_where_the_task_wants_more() -> None:
    task, queue = scouting(minCpuEfficiency=50)
    run_scouts(queue, 10, cpu_s=10)
    last_run(100)
    run_agents(3)
    task.refresh_from_db()
    assert (task.status, task.error_dialog) == ("exhausted", "its first jobs used 10 % of their cores, at least 50 % are wanted")


def test_the_size_of_jobs_is_set_by_the_output_of_scouts() -> None:
    task, queue = scouting(tgtMaxOutputForNG=10)
    for _ in range(10):
        leased = take(queue)
        report = good(leased.job_id)
        big = [output if output.lfn.endswith(".tgz") else replace(output, size=10**9) for output in report.outputs]
        end(leased, Report("finished", big))
    last_run(100)
    run_agents(3)
    task.refresh_from_db()
    assert parse(task.split_rule).gb_per_job == 10


def test_avalanche_ends_scouting_at_once_for_who_may() -> None:
    task, queue = scouting()
    take(queue)
    command(task.id, "avalanche", "user:opa", "I know this one")
    run_agents(2)
    task.refresh_from_db()
    assert task.status == "running"
    assert states(task)[-3:] == ["scouting", "scouted", "running"]
    run_jobs(queue)
    run_agents()
    assert Job.objects.filter(kind=JobKind.SCOUT, ended_at=None).count() == 1, "the one that was taken before goes on"
    assert Job.objects.filter(kind=JobKind.NORMAL).exists()
    with pytest.raises(NotAllowed):
        command(task.id, "avalanche", "user:opa")


def test_a_task_that_is_retried_while_it_scouts_has_as_many_scouts_again() -> None:
    task, queue = scouting()
    run_scouts(queue, 3)
    command(task.id, "kill", "user:ada")
    run_agents(3)
    command(task.id, "retry", "user:ada")
    run_agents(4)
    task.refresh_from_db()
    assert (task.status, Job.objects.filter(ended_at=None).count()) == ("scouting", 10)
    run_jobs(queue)
    run_agents(3)
    task.refresh_from_db()
    assert task.status == "running"


def test_scouts_that_were_closed_are_made_again_and_break_nothing() -> None:
    task, queue = scouting(nScouts=2)
    kill_jobs(live_jobs(task.id), "test", "moved")
    run_agents()
    assert Job.objects.filter(kind=JobKind.SCOUT, ended_at=None).count() == 2
    run_jobs(queue)
    run_agents(3)
    task.refresh_from_db()
    assert task.status == "running"


def test_scouts_whose_outputs_are_merged_are_no_longer_waited_for() -> None:
    (queue,) = grid("ALPHA")
    task = submitted(parameters("t", **{**MANY, "mergeOutput": True}))
    run_agents(3)
    run_scouts(queue, 10)
    last_run(60)
    run_agents(4)
    task.refresh_from_db()
    assert task.status == "running"
    assert Job.objects.filter(kind=JobKind.MERGE).exists()
    assert Job.objects.filter(kind=JobKind.NORMAL).exists()
