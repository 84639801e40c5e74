"""The throttler at work: how many jobs are made for a share or work queue, and when none are."""

from __future__ import annotations

import pytest
from django.db import connection

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import new_run, run_agent
from brokerage.agents.throttling import Throttle
from brokerage.models import ComputingQueue, DeclaredSlots, Job
from brokerage.rules.facts.job_kind import JobKind
from tests.builders import grid, parameters, submitted
from tests.flow.steps import end, take, try_take
from workqueues.models import GlobalShare, ProcessLock, Task, ThrottleVerdict, WorkQueue

pytestmark = pytest.mark.django_db

COMPONENT = "anal_job_throttler"


@pytest.fixture
def mc() -> ComputingQueue:
    """A queue that the brokerage finds never full, and the share MC of the VO demo."""
    gdpconfig.set_override("core", "POLICY_analysis", "generic", who="ada", why="test")
    gdpconfig.set_override("jobbroker", "NQUEUELIMITSITE", 100_000, who="ada", why="test")
    (alpha,) = grid("ALPHA")
    DeclaredSlots.objects.create(queue=alpha, n=100_000)
    GlobalShare.objects.create(name="MC", vo="demo", value=1, processing_type="evgen")
    return alpha


def limit(name: str, value: object) -> None:
    """Set a key of the throttler for tasks of users."""
    gdpconfig.set_override(COMPONENT, name, value, who="ada", why="test")


def work(name: str = "t", jobs: int = 600, **more: object) -> Task:
    """A task of so many jobs, ready for them."""
    task = submitted(parameters(name, nEvents=jobs, nEventsPerJob=1, **more))
    for agent in ("refine", "feed", "assign"):
        run_agent(agent, looked=True)
    return task


def made() -> int:
    """Jobs that one run of generate makes."""
    before = Job.objects.count()
    run_agent("generate", looked=True)
    return Job.objects.count() - before


def test_a_pass_makes_no_more_than_the_verdict_says_then_the_share_is_held_until_jobs_run(mc: ComputingQueue) -> None:
    task = work()
    assert made() == 250  # half of the least bunch
    assert made() == 0
    verdict = ThrottleVerdict.objects.latest("id")
    assert (verdict.decision, verdict.reason) == ("SKIP", "250 jobs wait, more than 2 x 0 that run")
    task.refresh_from_db()
    assert (task.status, task.error_dialog) == ("running", "")
    for _ in range(84):
        take(mc)
    assert made() == 250  # 166 wait, 84 run


def test_the_room_of_a_run_is_that_of_the_unit_not_of_each_task(mc: ComputingQueue) -> None:
    work("one", 200)
    work("two", 200)
    assert made() == 250


def test_another_share_goes_on_while_one_is_held(mc: ComputingQueue) -> None:
    GlobalShare.objects.create(name="Data", vo="demo", value=1, processing_type="reco")
    work("mc", 300)
    made()
    work("data", 30, processingType="reco")
    assert made() == 30
    assert set(ThrottleVerdict.objects.values_list("unit", "decision")) == {("MC", "PASS"), ("MC", "SKIP"), ("Data", "PASS")}


def test_a_lower_limit_lets_jobs_wait_and_a_cap_decides_how_many_are_made(mc: ComputingQueue) -> None:
    limit("NQUEUELIMIT_MC_SCORE", 300)
    work("many", 1000)
    assert made() == 250
    assert made() == 250  # 250 wait, 300 may
    assert made() == 0
    limit("NQUEUELIMIT_MC_SCORE", 100_000)
    limit("NQUEUECAP_MC", 600)
    assert made() == 500  # all that are left: a twentieth of the lower limit is more than a fifth of the cap


def test_a_cap_holds_and_a_running_cap_too(mc: ComputingQueue) -> None:
    limit("NQUEUELIMIT_MC", 1000)
    limit("NQUEUECAP_MC_SCORE", 100)
    work()
    assert made() == 50  # max(1000 / 20, 100 / 5)
    assert [made(), made(), made()] == [50, 50, 0]
    assert ThrottleVerdict.objects.latest("id").reason == "150 jobs wait, the cap is 100"
    limit("NRUNNINGCAP_MC", 1)
    limit("NQUEUECAP_MC_SCORE", 500)
    take(mc)
    assert made() == 100
    take(mc)
    assert made() == 0
    assert ThrottleVerdict.objects.latest("id").rule == "running_cap"


def test_a_share_that_is_not_throttled_and_a_queue_without_share_make_all_their_jobs(mc: ComputingQueue) -> None:
    GlobalShare.objects.update(throttled=False)
    work("one", 300)
    assert made() == 300
    work("two", 300, vo="other")
    assert made() == 300
    assert set(ThrottleVerdict.objects.values_list("unit", "rule")) == {("MC", "unthrottled"), ("default", "unthrottled")}


def test_a_work_queue_is_a_unit_where_it_drives_the_vo(mc: ComputingQueue) -> None:
    gdpconfig.set_override("shares", "SHARE_MODEL", "work_queue", who="ada", why="test")
    part = WorkQueue.objects.create(queue_name="part", queue_order=1, vo="*", queue_type="", is_partition=True, queue_share=10)
    for order, kind in ((2, "evgen"), (3, "reco")):
        WorkQueue.objects.create(
            queue_name=kind, queue_order=order, vo="*", queue_type="", partition=part, criteria=f"processingType = '{kind}'"
        )
    work("one", 200)
    work("two", 200, processingType="reco")
    assert made() == 250  # sub queues are handled together, as their partition
    assert made() == 0
    verdict = ThrottleVerdict.objects.latest("id")
    assert (verdict.unit, verdict.work_queue_id, verdict.resource_type, verdict.decision) == ("part", part.id, "SCORE", "SKIP")


def test_no_jobs_while_submission_is_off_for_the_vo(mc: ComputingQueue) -> None:
    gdpconfig.set_override("jobgen", "JOB_SUBMISSION", False, vo="demo", who="ada", why="test")
    work()
    assert made() == 0
    assert ThrottleVerdict.objects.get().reason == "JOB_SUBMISSION is off for demo"


def test_work_shortage_has_a_threshold_of_its_own(mc: ComputingQueue) -> None:
    limit("THROTTLE_THRESHOLD_FOR_WORK_SHORTAGE", 300)
    work()
    made()
    take(mc)
    assert made() == 0
    gdpconfig.set_override("core", "WORK_SHORTAGE", True, who="ada", why="test")
    assert made() == 250


def test_urgent_tasks_pass_a_held_share_where_that_is_on(mc: ComputingQueue) -> None:
    work("bulk", 300, prodSourceLabel="managed", taskPriority=100)
    made()
    urgent = work("urgent", 10, prodSourceLabel="managed", taskPriority=700)
    assert made() == 0
    gdpconfig.set_override("prod_job_throttler", "THROTTLE_HIGH_PRIORITY", True, who="ada", why="test")
    assert made() == 10
    assert set(Job.objects.order_by("-id")[:10].values_list("task_id", flat=True)) == {urgent.id}
    assert ThrottleVerdict.objects.latest("id").least_priority == 700


def test_an_urgent_task_is_not_compared_with_merge_jobs(mc: ComputingQueue) -> None:
    gdpconfig.set_override("prod_job_throttler", "THROTTLE_HIGH_PRIORITY", True, who="ada", why="test")
    work("bulk", 300, prodSourceLabel="managed", taskPriority=100)
    made()
    Job.objects.filter(id=Job.objects.latest("id").id).update(kind=JobKind.MERGE, priority=5000, ready_priority=-5000)
    work("urgent", 10, prodSourceLabel="managed", taskPriority=700)
    assert made() == 10


def test_equal_verdicts_are_one_with_a_count_and_the_last_numbers(mc: ComputingQueue) -> None:
    work()
    made()
    for _ in range(3):
        made()
    (skip,) = ThrottleVerdict.objects.filter(decision="SKIP")
    assert (skip.n_times, skip.activated) == (3, 250)
    end(take(mc))
    made()
    skip.refresh_from_db()
    assert (skip.n_times, skip.activated, skip.reason) == (4, 249, "249 jobs wait, more than 2 x 0 that run")


def test_ended_jobs_and_jobs_of_other_labels_do_not_count(mc: ComputingQueue) -> None:
    work("user", 40)
    made()
    work("prod", 20, prodSourceLabel="managed")
    assert made() == 20
    while (leased := try_take(mc)) is not None:
        end(leased)
    work("more", 30)
    assert made() == 30


def test_a_unit_that_another_run_has_locked_is_passed_over_and_the_others_are_not(mc: ComputingQueue) -> None:
    GlobalShare.objects.create(name="Data", vo="demo", value=1, processing_type="reco")
    work("mc", 30)
    first = Throttle.begin(new_run("generate"))
    data = work("data", 20, processingType="reco")
    assert made() == 20
    assert set(Job.objects.values_list("task_id", flat=True)) == {data.id}
    first.end()
    assert made() == 30


def test_a_lock_whose_holder_is_dead_is_taken_over(mc: ComputingQueue) -> None:
    work("mc", 30)
    Throttle.begin(new_run("generate"))
    assert made() == 0
    with connection.cursor() as cursor:
        cursor.execute("UPDATE workqueues_processlock SET locked_time = now() - interval '1 hour'")
    assert made() == 30
    assert list(ProcessLock.objects.values_list("locked_by", flat=True)) == [""]
