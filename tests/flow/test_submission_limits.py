"""Limits of sites hold for jobs whichever way they get there: what a site advertises, and running limits on kinds of jobs."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from broker_site.foundation.gdpconfig import set_override
from brokerage.agents.submit import CACHE
from brokerage.ledger import match_limits
from brokerage.ledger.match_limits import LIMITS
from brokerage.ledger.site_limits import SiteCount, advertise, take_room
from brokerage.models import ComputingQueue, Job, SiteAdvertisement, SubmittedJob
from brokerage.queries.site_limits import max_age_s
from brokerage.rules.dispatch.match_limits import SiteRules
from brokerage.rules.dispatch.site_limits import Advertisement
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents
from tests.flow.test_submission import submission_queue, submit, why

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def anew() -> None:
    LIMITS.forget()
    CACHE.forget()


def advertised(jobs: int, most: int, submitting: int = 0, most_submitting: int = 100, site: str = "SITE_ALPHA") -> None:
    ad = Advertisement(max_jobs=most, max_submitting_jobs=most_submitting, current_jobs=jobs, current_submitting_jobs=submitting)
    advertise(site, SiteCount(ad, timezone.now()), "enrolment")


def test_a_site_gets_no_more_submitted_jobs_than_it_advertises_room_for() -> None:
    submission_queue(slots=100)
    submitted(parameters(nEvents=100, nEventsPerJob=10))
    run_agents()
    advertised(95, 98)
    assert submit() == 3
    assert submit() == 0
    assert why(10) == {("SITE_ALPHA", "NoAdvertisedRoom")}
    assert take_room("SITE_ALPHA", 1, max_age_s()) is None, "a pilot that asks gets none either"
    advertised(98, 200, submitting=3, most_submitting=5)
    row = SiteAdvertisement.objects.get()
    assert row.matched == 3, "as they came after its count, as far as anybody can tell"
    SiteAdvertisement.objects.update(matched=0)
    assert submit() == 2
    SiteAdvertisement.objects.update(counted_at=timezone.now() - timedelta(days=1), matched=0)
    assert submit() == 0, "one that is too old gives no room"


def test_jobs_go_to_another_site_that_has_room() -> None:
    submission_queue(slots=100)
    advertised(7, 7)
    submitted(parameters(nEvents=100, nEventsPerJob=10))
    run_agents()
    assert submit() == 0
    SiteAdvertisement.objects.all().delete()
    assert submit() == 10, "a site that never advertised has no such limits"


def test_running_limits_hold_together_with_what_pilots_got() -> None:
    submission_queue(slots=100)
    set_override(
        "dispatch", "RUNNING_LIMITS", '{"SITE_ALPHA": {"owner": {"ada": 4, "bob": 0}, "vo": {"demo": 6}}}', who="a", why="test"
    )
    submitted(parameters(nEvents=100, nEventsPerJob=10))
    run_agents()
    assert submit() == 4
    assert submit() == 0
    assert why(10) == {("SITE_ALPHA", "RunningLimit")}
    values = {"owner": frozenset({"ada"}), "vo": frozenset({"demo"})}
    LIMITS.forget()
    assert [str(on) for on, _ in LIMITS.at("SITE_ALPHA").why] == ["owner ada", "owner bob"], "a pilot that asks is held back too"
    assert LIMITS.passing("SITE_ALPHA", values) is not None
    set_override("dispatch", "RUNNING_LIMITS", '{"SITE_ALPHA": {"owner": {"ada": 40}, "vo": {"demo": 6}}}', who="a", why="test")
    LIMITS.forget()
    assert submit() == 2, "two more of the VO, whose jobs there are counted"


def test_a_limit_that_is_set_while_another_thread_reads_those_of_before_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    grid("ALPHA", "BETA")
    read = match_limits.site_rules

    def meanwhile(site: str) -> SiteRules:
        before = read(site)
        if site == "SITE_ALPHA" and not LIMITS.has("SITE_BETA"):
            set_override("dispatch", "RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"demo": 1}}}', who="a", why="test")
            assert not LIMITS.has("SITE_BETA"), "what the other thread asks"
            monkeypatch.setattr(match_limits, "site_rules", read)
        return before

    monkeypatch.setattr(match_limits, "site_rules", meanwhile)
    assert not LIMITS.has("SITE_ALPHA"), "it asked before"
    assert LIMITS.has("SITE_ALPHA")


def test_limits_of_one_site_leave_the_other_free() -> None:
    grid("ALPHA", "BETA")
    ComputingQueue.objects.update(submission="local")
    set_override("dispatch", "RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"demo": 1}}}', who="a", why="test")
    advertised(0, 2, site="SITE_BETA")
    submitted(parameters(nEvents=100, nEventsPerJob=10))
    run_agents()
    bound = Counter(Job.objects.values_list("computing_queue__site_id", flat=True))  # by chance
    takes = {"SITE_ALPHA": min(bound["SITE_ALPHA"], 1), "SITE_BETA": min(bound["SITE_BETA"], 2)}
    assert submit() == sum(takes.values()) > 0
    assert Counter(SubmittedJob.objects.values_list("site_id", flat=True)) == Counter(takes)
