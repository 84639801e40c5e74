"""Jobs of queues with submission: how many go, to which pilot, and what becomes of those whose pilots do not come."""

from __future__ import annotations

import time
from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.postgres.functions import TransactionNow

from broker_site.foundation.agency.run import new_run
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.gdpconfig.changesets import Draft, named_line
from broker_site.foundation.gdpconfig.store import apply
from brokerage.agents.submit import CACHE, cycle
from brokerage.ledger.expiry import end_seen
from brokerage.ledger.handing_out import handed_out_before
from brokerage.ledger.heartbeats import SignOfLife, beat
from brokerage.ledger.lease import Lease
from brokerage.ledger.submission import Coming, claim, end_killed, end_unstartable, forget_ended, renew, wait_at
from brokerage.models import ComputingQueue, Job, JobResult, JobSpec, Site, SubmittedJob
from brokerage.queries.invariants import look
from brokerage.queries.job_standing import job_standing
from brokerage.queries.submission import held_jobs, site_facts
from brokerage.rules.dispatch.settlement import JobVersion
from brokerage.submitters.choice import SUBMITTERS
from tests.builders import grid, parameters, submitted
from tests.flow.steps import end as end_job
from tests.flow.steps import run_agents
from workqueues.models import Task

pytestmark = pytest.mark.django_db
HERE = Coming("node1", "submitted-1", 4711, 2000, 5000)


def submission_queue(slots: int = 4, **keys: object) -> ComputingQueue:
    """A queue with submission, at a site with so many slots and no others for small sites."""
    (queue,) = grid("ALPHA")
    ComputingQueue.objects.update(submission="local")
    Site.objects.update(cpu_slots=slots)
    for key, value in {"FEWEST_CPU_SLOTS": 1, "FEWEST_IO_SLOTS": 1, **keys}.items():
        set_override("submission", key, value, who="test", why="a small site")
    CACHE.forget()
    return queue


def set_site(**columns: object) -> None:
    """What an operator sets at the site; nothing: its document holds again."""
    line = named_line("site", "SITE_ALPHA", "", columns or None, remove=not columns)
    assert apply(Draft([line], "ada", "a test", "command")) is not None


def submit() -> int:
    """One cycle of the agent."""
    return cycle(new_run("submit"), {"local": SUBMITTERS["local"]})


def number(*states: str) -> int:
    return Job.objects.filter(status__in=states).count()


def come(row: SubmittedJob) -> Lease:
    """The pilot of a submitted job comes, and asks for it: what it got."""
    queue = Job.objects.get(id=row.job_id).placed_at
    assert claim(row.pilot_id, queue.id, HERE) is not None
    (job,) = handed_out_before(row.pilot_id, row.pilot_id)
    assert job.document["id"] == row.job_id
    return Lease(row.job_id, job.epoch, 1, 0, job.lease_s)


def run(row: SubmittedJob) -> Lease:
    """The same, and the payload begins."""
    leased = come(row)
    assert beat([SignOfLife(leased.job_id, leased.epoch, "running")]) != [None]
    return leased


def test_jobs_go_to_pilots_of_their_own_within_the_thresholds_of_their_site() -> None:
    """Of 4 slots 2 may wait for all, and one (45 %) of a kind; what runs and waits together may be 5 of the kind."""
    submission_queue(slots=4, FEWEST_CPU_SLOTS=2)
    submitted(parameters(nEvents=100, nEventsPerJob=10))
    run_agents()
    assert number("activated") == 10
    assert submit() == 2
    assert submit() == 0, "none of them runs yet"
    first = Job.objects.order_by("id")[:2]
    assert [(job.status, job.lease_holder == job.lease_request) for job in first] == [("sent", True)] * 2, "the oldest go first"
    assert [row.site_id for row in SubmittedJob.objects.all()] == ["SITE_ALPHA"] * 2
    assert why(10) == {("SITE_ALPHA", "NoPendingSlot")}
    leases = [run(row) for row in SubmittedJob.objects.order_by("job_id")]
    for n in (2, 2):
        assert submit() == n
        leases += [run(row) for row in SubmittedJob.objects.filter(claimed_by="")]
    assert submit() == 0, "4 run and 2 more than slots do"
    assert why(10) == {("SITE_ALPHA", "NoRunningSlot")}
    assert end_job(leases[0]) == "finished"
    forget_ended()
    assert SubmittedJob.objects.count() == 5
    assert submit() == 1
    assert [f"{found.invariant.name}: {found.examples}" for found in look() if found.violations] == []


@pytest.mark.parametrize("binding", ["early", "late"])
def test_outputs_of_submitted_jobs_go_to_the_storage_of_their_queue(binding: str) -> None:
    submission_queue(FEWEST_CPU_SLOTS=2)
    grid("BETA")
    submitted(parameters(nEvents=20, nEventsPerJob=10, binding=binding, site="ALPHA" if binding == "early" else "ALPHA,BETA"))
    run_agents()
    waiting = {"early": [("ALPHA", "ALPHA_DISK")] * 2, "late": [(None, "")] * 2}[binding]
    assert list(Job.objects.values_list("computing_queue__name", "storage")) == waiting
    assert submit() == 2
    assert list(Job.objects.values_list("computing_queue__name", "storage")) == [("ALPHA", "ALPHA_DISK")] * 2
    assert [f"{found.invariant.name}: {found.examples}" for found in look() if found.violations] == []


def why(nth: int) -> set[tuple[str, str]]:
    """What keeps the job with this place from being submitted."""
    job = Job.objects.order_by("id")[nth - 1]
    standing = job_standing(job)
    assert standing is not None and standing.submission is not None
    return {(waits.site, waits.reason) for waits in standing.submission}


def test_a_second_pilot_gets_nothing_and_one_that_lost_the_answer_gets_its_job_again() -> None:
    queue = submission_queue()
    submitted(parameters(nEvents=10, nEventsPerJob=10))
    run_agents()
    assert submit() == 1
    row = SubmittedJob.objects.get()
    assert come(row).epoch == come(row).epoch == 1
    assert claim(row.pilot_id, queue.id, HERE._replace(pid=4712)) is None, "another process is its pilot"
    assert claim(row.pilot_id, queue.id + 1, HERE) is None
    assert handed_out_before(uuid4(), row.pilot_id) == []
    run(row)
    assert handed_out_before(row.pilot_id, row.pilot_id) == [], "it has begun"
    assert end_job(Lease(row.job_id, 1, 1, 0, 60)) == "finished"
    assert claim(row.pilot_id, queue.id, HERE) is None, "its job is over"


def test_a_job_whose_pilot_never_comes_goes_back_with_the_end_of_its_lease() -> None:
    submission_queue()
    task = submitted(parameters(nEvents=10, nEventsPerJob=10))
    run_agents()
    assert submit() == 1
    Job.objects.filter(status="sent").update(lease_until=TransactionNow() - timedelta(seconds=1))
    run_agents()
    lost, again = Job.objects.order_by("id")
    assert (lost.status, lost.sub_status, again.status) == ("failed", "lost_heartbeat", "activated")
    CACHE.forget()
    assert forget_ended() == 1
    assert submit() == 1
    run(SubmittedJob.objects.get())
    assert end_job(Lease(again.id, 1, 1, 0, 60)) == "finished"
    run_agents()
    task.refresh_from_db()
    assert task.status == "done"


def test_what_waits_longer_than_a_sent_job_may_is_not_lost_and_a_kill_reaches_jobs_whose_pilots_wait() -> None:
    submission_queue(FEWEST_CPU_SLOTS=2)
    submitted(parameters(nEvents=20, nEventsPerJob=10))
    run_agents()
    assert submit() == 2
    wait_at("local", held_jobs(), "test")
    Job.objects.update(status_since=TransactionNow() - timedelta(hours=3), lease_until=TransactionNow() + timedelta(minutes=1))
    renew(held_jobs())
    run_agents()
    assert number("starting") == 2
    assert not Job.objects.filter(lease_until__lt=TransactionNow() + timedelta(minutes=30)).exists()
    Job.objects.filter(id=Job.objects.order_by("id")[0].id).update(kill_requested=True, kill_outcome="cancelled", kill_why="ada")
    assert end_killed(held_jobs(), "test") == 1
    assert (number("cancelled"), number("starting")) == (1, 1)


@pytest.mark.parametrize(("state", "days", "code"), [("Draining", 3, "71103"), ("Down", 0, "71102")])
def test_a_site_that_is_down_or_has_drained_for_too_long_sends_jobs_elsewhere_with_a_code(
    state: str, days: int, code: str
) -> None:
    submission_queue()
    submitted(parameters(nEvents=10, nEventsPerJob=10))
    run_agents()
    if days:
        set_site(state=state)
        assert submit() == 0
        assert why(1) == {("SITE_ALPHA", "SiteDrains")}
        Site.objects.update(state_since=TransactionNow() - timedelta(days=days))
    else:
        set_site(state=state)
    assert submit() == 1
    assert (number("closed"), JobResult.objects.get().error_code) == (1, code)
    run_agents()
    assert number("activated") == 0, "no new jobs are made for a site that takes none"
    assert "its site" in Task.objects.get().error_dialog
    set_site()
    assert (Site.objects.get().state, site_facts().sites["SITE_ALPHA"].state) == ("ACTIVE", "Normal")


def test_a_list_that_holds_all_is_read_anew_and_a_full_one_when_its_time_is_over_or_other_sites_take_jobs() -> None:
    submission_queue(slots=40, CACHE_SIZE=3, MOST_PER_CYCLE=1)
    submitted(parameters(nEvents=40, nEventsPerJob=10))
    run_agents()
    oldest = list(Job.objects.order_by("id").values_list("id", flat=True))
    assert [job.id for job in CACHE.jobs(site_facts())] == oldest[:3]
    Job.objects.filter(id=oldest[3]).update(priority=5000, ready_priority=-5000)
    assert [job.id for job in CACHE.jobs(site_facts())] == oldest[:3], "it is full, and not yet old"
    end_seen([JobVersion(oldest[0], 0, "activated")], "cancelled", "test", "aborted")
    assert [job.id for job in CACHE.jobs(site_facts())] == oldest[1:3]
    Site.objects.update(state="Draining")
    assert [job.id for job in CACHE.jobs(site_facts())] == [oldest[3], *oldest[1:3]], "another site drains"
    set_override("submission", "CACHE_SIZE", 9, who="test", why="room")
    set_override("submission", "CACHE_PERIOD", 0.05, who="test", why="often")
    time.sleep(0.06)
    assert len(CACHE.jobs(site_facts())) == 3
    Job.objects.filter(id=oldest[1]).update(priority=6000, ready_priority=-6000)
    assert CACHE.jobs(site_facts())[0].id == oldest[1], "it holds all"


@pytest.mark.parametrize(("max_jobs", "sent"), [(0, 0), (4, 3), (1000, 10)])
def test_the_hard_limit_holds_whatever_the_thresholds_say(max_jobs: int, sent: int) -> None:
    submission_queue(slots=1000, MAX_JOBS=max_jobs)
    submitted(parameters(nEvents=100, nEventsPerJob=10))
    run_agents()
    assert submit() == sent
    if sent < 10:
        assert why(10) == {("SITE_ALPHA", "HardLimit")}


def test_a_job_without_description_and_one_whose_pilot_cannot_be_started_end_with_a_code() -> None:
    submission_queue(slots=100)
    submitted(parameters(nEvents=20, nEventsPerJob=10))
    run_agents()
    blank, other = Job.objects.order_by("id")
    JobSpec.objects.filter(job=blank).delete()
    assert submit() == 2, "one is sent, one is closed"
    SubmittedJob.objects.update(tries=3, handle="")
    assert end_unstartable(held_jobs(), "test") == 1
    codes = {result.job_id: result.error_code for result in JobResult.objects.all()}
    assert codes == {blank.id: "71104", other.id: "71105"}
    assert number("closed") == 2
