"""Jobs go only where pilots can get them: not to sites that the task bans, and with stations only to sites that offer one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from broker_site.foundation.agency.run import run_agent
from brokerage.ledger.site_limits import SiteCount, advertise
from brokerage.models import Decision, Job, SiteAdvertisement
from brokerage.queries.what_if import what_if
from brokerage.rules.dispatch.site_limits import Advertisement
from brokerage.rules.explain.edits import read_edits
from tests.builders import catalogue_dataset, grid, parameters, reading, submitted
from tests.flow.steps import run_agents, take, try_take
from workqueues.models import Task

pytestmark = pytest.mark.django_db

ROOM = Advertisement(max_jobs=100, max_submitting_jobs=100, current_jobs=0, current_submitting_jobs=0)


def offer(site: str, *stations: str) -> None:
    """The site advertises these stations."""
    advertise(site, SiteCount(ROOM, timezone.now(), stations), "enrolment")


def places(task: Task) -> set[str]:
    """Where the jobs of the task are."""
    return set(Job.objects.filter(task_id=task.id).values_list("computing_queue__name", flat=True))


def waits(task: Task) -> str:
    """The reason with which it waits."""
    task.refresh_from_db()
    assert not places(task)
    assert task.status == "pending", task.status
    return task.error_dialog


def first(**wish: Any) -> Task:
    task = submitted(parameters("t1", **wish))
    run_agents()
    return task


def test_jobs_of_a_task_that_bans_a_site_go_to_the_others_and_are_taken_there() -> None:
    alpha, beta = grid("ALPHA", "BETA")
    task = first(bannedSites=["SITE_ALPHA"])
    assert places(task) == {"BETA"}
    assert try_take(alpha) is None
    assert take(beta).job_id in Job.objects.filter(task_id=task.id).values_list("id", flat=True)


def test_a_task_that_bans_every_site_is_told_that_it_can_run_nowhere() -> None:
    grid("ALPHA")
    told = waits(first(bannedSites="SITE_ALPHA, elsewhere"))
    assert "can never take it" in told
    assert "its site SITE_ALPHA is among those that the task bans (-banned_site)" in told


def test_a_task_that_names_a_queue_of_a_site_that_it_bans_waits_and_says_why() -> None:
    grid("ALPHA", "BETA")
    assert "(-banned_site)" in waits(first(bannedSites=["SITE_ALPHA"], site="ALPHA"))


def test_jobs_of_a_task_with_stations_go_only_to_a_site_that_offers_one_however_old_its_advertisement_is() -> None:
    grid("ALPHA", "BETA", "GAMMA")
    offer("SITE_ALPHA", "st9")
    offer("SITE_BETA", "st2", "st3")
    SiteAdvertisement.objects.update(counted_at=timezone.now() - timedelta(days=2))
    assert places(first(stations=["st1", "st2"])) == {"BETA"}


def test_a_task_waits_while_no_site_offers_its_stations_and_goes_on_when_one_does() -> None:
    grid("ALPHA", "BETA")
    task = first(stations=["st1"])
    assert "its site offers none of the stations st1; no site offers them now (-no_station)" in waits(task)
    offer("SITE_BETA", "st2")
    run_agent("free", looked=True)
    run_agents()
    assert "no site offers them now" in waits(task)
    offer("SITE_BETA", "st1")
    run_agent("free", looked=True)
    run_agents()
    assert places(task) == {"BETA"}


def test_where_the_stations_are_offered_is_told() -> None:
    grid("ALPHA", "BETA")
    offer("SITE_BETA", "st1")
    assert "its site offers none of the stations st1; they are offered at SITE_BETA" in waits(
        first(stations=["st1"], site="ALPHA")
    )


def test_input_at_a_site_without_the_station_does_not_keep_the_task_from_the_site_with_it() -> None:
    grid("ALPHA", "BETA")
    offer("SITE_BETA", "st1")
    catalogue_dataset("in.data", 4, storage="ALPHA_DISK")
    task = submitted(reading("t1", "in.data", stations=["st1"]))
    run_agents()
    assert places(task) == {"BETA"}


def test_any_station_is_no_condition_and_any_bans_nothing() -> None:
    grid("ALPHA")
    assert places(first(stations=["ANY"], bannedSites=["any"])) == {"ALPHA"}


def test_the_decision_keeps_where_stations_were_offered_and_what_if_asks_where_others_are_now() -> None:
    grid("ALPHA", "BETA")
    offer("SITE_BETA", "st1", "st2")
    task = first(stations=["st7"])
    asked = Decision.objects.filter(task_id=task.id).latest("id").ask
    assert (asked["stations"], asked["station_sites"]) == (["st7"], [])
    after = what_if(task, read_edits(["stations=st2"])).after
    assert after is not None
    assert [choice.name for choice in after.chosen] == ["BETA"]
    after = what_if(task, read_edits(["stations=st2", "bannedSites=SITE_BETA"])).after
    assert after is not None
    assert {skip.name: skip.criterion for skip in after.skipped} == {"ALPHA": "-no_station", "BETA": "-banned_site"}
