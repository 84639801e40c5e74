"""Agents run on their configured period, also after it was changed; ticks that come early or twice do not double the pace."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.db.models.functions import Now

from broker_site.celery import app
from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.duties import AGENTS
from broker_site.foundation.agency.models import Agent
from broker_site.foundation.agency.run import run_agent
from broker_site.roof.beat_scheduler import PeriodScheduler

pytestmark = pytest.mark.django_db


def periods(scheduler: PeriodScheduler) -> dict[str, float]:
    entries: dict[str, Any] = scheduler.schedule
    return {name: entry.schedule.run_every.total_seconds() for name, entry in entries.items()}


def test_beat_ticks_every_agent_on_its_period_and_follows_a_change() -> None:
    scheduler = PeriodScheduler(app=app, lazy=True)
    scheduler.setup_schedule()
    assert set(periods(scheduler)) == set(AGENTS)
    assert periods(scheduler)["refine"] == 10
    gdpconfig.set_override("agents", "PERIOD_refine", "250ms", who="test", why="shorter")
    scheduler.follow_configuration()
    assert periods(scheduler)["refine"] == 0.25
    assert scheduler.schedule["refine"].task == "agent.refine"


def test_a_beat_that_starts_ticks_everybody_at_once_and_a_changed_period_does_not() -> None:
    """A beat that is restarted every half hour must not keep agents of an hour from ever running."""
    scheduler = PeriodScheduler(app=app, lazy=True)
    scheduler.setup_schedule()
    entries: dict[str, Any] = scheduler.schedule
    assert [name for name, entry in entries.items() if not entry.is_due()[0]] == []
    scheduler.schedule["watch"] = entries["watch"].__next__()
    gdpconfig.set_override("agents", "PERIOD_watch", "5min", who="test", why="shorter")
    scheduler.follow_configuration()
    assert not scheduler.schedule["watch"].is_due()[0]


def test_an_agent_runs_when_it_is_due_or_told_to_look_and_not_before() -> None:
    assert run_agent("wake") == 0
    assert run_agent("wake") is None
    assert run_agent("wake", looked=True) == 0
    Agent.objects.filter(name="wake").update(last_start=F("last_start") - timedelta(seconds=29))
    assert run_agent("wake") == 0
    agent = Agent.objects.get(name="wake")
    assert (agent.runs, agent.last_error) == (3, "")


def test_an_agent_that_is_switched_off_does_not_run() -> None:
    gdpconfig.set_override("agents", "ENABLED_wake", False, who="test", why="off")
    assert run_agent("wake", looked=True) is None
    assert not Agent.objects.filter(name="wake", last_start__lte=Now()).exists()


def test_a_tick_outlives_a_minute_of_lag_however_short_the_period() -> None:
    """Workers that are behind by more than two short periods would never come to an agent whose ticks were void by then."""
    scheduler = PeriodScheduler(app=app, lazy=True)
    scheduler.setup_schedule()
    entries: dict[str, Any] = scheduler.schedule
    stands = {name: entry.options["expires"] for name, entry in entries.items()}
    assert min(stands.values()) >= 60
    assert all(stands[name] >= 2 * period for name, period in periods(scheduler).items())
