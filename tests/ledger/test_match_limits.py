"""Running limits and delays between matches at a site: exact, however many processes match there at once."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection, connections, transaction
from django.utils.timezone import now

from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.gdpconfig.keys import BadConfig
from broker_site.foundation.sql.prepared import run_together
from brokerage.ledger.lease import Ask, HeldAtMost, lease
from brokerage.ledger.match_limits import Limits
from brokerage.ledger.settle import settle_job
from brokerage.models import ComputingQueue, Job, MatchGauge, PilotCE, Site
from brokerage.queries import held_slots as held_slots_module
from brokerage.queries.held_slots import forget_tasks, held_slots
from brokerage.rules.dispatch.match_limits import ATTRIBUTES, Held, Limited
from tests.builders import catalogue_dataset, grid, pilot, reading, submitted
from tests.flow.steps import BAD, noted, run_agents
from tests.ledger.test_races import together
from workqueues.models import Task, TaskParams

pytestmark = pytest.mark.django_db(transaction=True)

SITE = "SITE_ALPHA"
VO = {"vo": frozenset({"demo"})}
OWNER = {"owner": frozenset({"ada"})}
PROCESSES = 6


@pytest.fixture
def queue() -> Iterator[ComputingQueue]:
    (made,) = grid("ALPHA")
    forget_tasks()
    yield made


@pytest.fixture
def limits() -> Limits:
    """What a process that has just begun knows."""
    return Limits()


def configure(key: str, text: str) -> None:
    set_override("dispatch", key, text, who="ada", why="test")


def jobs(n: int) -> list[int]:
    """So many waiting jobs of ada; their task queues."""
    set_override("jobbroker", "NQUEUELIMITSITE", 1000, who="ada", why="room for all jobs")
    catalogue_dataset("limited.in", n)
    submitted(reading("limited", "limited.in", nFilesPerJob=1))
    run_agents(1)
    assert Job.objects.filter(status="activated").count() == n
    return sorted(set(Job.objects.values_list("task_queue_id", flat=True)))


def match(limits: Limits, groups: list[int], holder: UUID, values: dict[str, frozenset[str]], *ces: str) -> bool:
    """One match as the verb makes it: the limits are passed and counted by the statement of the lease."""
    if any(limits.at(SITE, ces).values.get(name, frozenset()) & some for name, some in values.items()):
        return False
    if (asked := limits.passing(SITE, values, ces)) is None:
        return lease(groups, holder, uuid4(), 60.0) is not None
    began, request = time.monotonic(), uuid4()
    with transaction.atomic():
        asks = [Ask(group, holder, request, 60.0, HeldAtMost(), limits=asked) for group in groups]
        if lease(asks, holder, request, 60.0) is not None:
            run_together(limits.noting(SITE, ces, holder, request))
            limits.matched(SITE, asked)
            return True
    limits.not_matched(asked)
    limits.refused(SITE, asked, time.monotonic() - began)
    return False


def test_a_site_without_limits_costs_no_statement(queue: ComputingQueue, limits: Limits, django_assert_num_queries: Any) -> None:
    Site.objects.create(name="SITE_BETA")
    configure("RUNNING_LIMITS", '{"SITE_BETA": {"vo": {"demo": 1}}}')
    limits.at(SITE)
    with django_assert_num_queries(0):
        assert not limits.at(SITE)
        assert limits.passing(SITE, VO) is None


def test_a_limit_that_is_set_lower_holds_at_once_though_the_gauges_are_the_same(queue: ComputingQueue, limits: Limits) -> None:
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"demo": 1}}}')
    assert not limits.at(SITE)
    assert not limits.at(SITE)
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"demo": 0}}}')
    assert limits.at(SITE).values == VO


def test_what_holds_at_one_ce_does_not_at_another(queue: ComputingQueue, limits: Limits) -> None:
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"CEs": {"ce1": {"vo": {"demo": 0}}, "ce2": {"vo": {"demo": 1}}}}}')
    for _ in range(2):
        assert not limits.at(SITE, ["ce2", "ce3"])
        assert limits.at(SITE, ["ce2", "ce1"]).values == VO


def test_jobs_that_run_already_are_counted_before_the_first_match(queue: ComputingQueue, limits: Limits) -> None:
    groups = jobs(6)
    for _ in range(3):
        assert lease(groups, pilot(queue), uuid4(), 60.0)
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"owner": {"ada": 4}, "vo": {"demo": 100}}}')
    assert match(limits, groups, pilot(queue), {**VO, **OWNER})
    assert not match(limits, groups, pilot(queue), {**VO, **OWNER})
    assert limits.at(SITE).values == {"owner": {"ada"}}
    assert [why for _, why in limits.at(SITE).why] == ["owner ada: 4 jobs there, of at most 4"]


def test_a_job_that_ends_makes_room_at_the_next_count(queue: ComputingQueue, limits: Limits) -> None:
    configure("RUNNING_COUNT_PERIOD", "100ms")
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"demo": 1}}}')
    groups = jobs(3)
    assert match(limits, groups, pilot(queue), VO)
    assert not match(limits, groups, pilot(queue), VO)
    job = Job.objects.get(status="sent")
    settle_job(job.id, job.epoch, BAD, "pilot")
    time.sleep(0.4)
    assert match(limits, groups, pilot(queue), VO)


def test_where_counting_takes_long_it_is_done_for_a_small_part_of_the_time(
    queue: ComputingQueue, limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure("RUNNING_COUNT_PERIOD", "10ms")
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"demo": 1}}}')
    groups, counted = jobs(2), []

    def many(*args: Any) -> Counter[Limited]:
        counted.append(time.monotonic())
        time.sleep(0.02)
        return held_slots(*args)

    monkeypatch.setattr("brokerage.ledger.match_limits.held_slots", many)
    assert match(limits, groups, pilot(queue), VO)
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        assert not match(limits, groups, pilot(queue), VO)
        time.sleep(0.01)
    assert 2 <= len(counted) <= 3
    assert min(b - a for a, b in pairwise(counted)) > 0.9
    job = Job.objects.get(status="sent")
    settle_job(job.id, job.epoch, BAD, "pilot")
    time.sleep(1.3)
    assert match(limits, groups, pilot(queue), VO)


def test_after_the_clock_was_set_back_jobs_are_counted_all_the_same(queue: ComputingQueue, limits: Limits) -> None:
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"demo": 1}}}')
    groups = jobs(1)
    limits.at(SITE)
    MatchGauge.objects.update(running=1, counted_at=now() + timedelta(hours=1))
    limits.forget()
    assert match(limits, groups, pilot(queue, "a"), VO), "the job that it counted has ended"


def test_what_others_match_meanwhile_does_not_put_off_the_count(queue: ComputingQueue, limits: Limits) -> None:
    """Jobs of one kind that ended make room also where matches of another kind never pause."""
    configure("RUNNING_COUNT_PERIOD", "100ms")
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"owner": {"ada": 1}, "vo": {"demo": 100}}}')
    groups = jobs(1)
    assert match(limits, groups, pilot(queue), OWNER)
    job = Job.objects.get(status="sent")
    settle_job(job.id, job.epoch, BAD, "pilot")
    due = time.monotonic() + 10
    while "owner" in limits.at(SITE).values:
        assert time.monotonic() < due, "the jobs that ended are still counted"
        with transaction.atomic():
            assert not noted(limits, SITE, VO)
            transaction.set_rollback(True)
        time.sleep(0.05)


def test_limits_of_a_ce_count_the_jobs_at_that_ce(queue: ComputingQueue, limits: Limits) -> None:
    configure("RUNNING_COUNT_PERIOD", "0s")
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"demo": 5}, "CEs": {"ce1": {"vo": {"demo": 2}}}}}')
    groups = jobs(9)
    made = [match(limits, groups, pilot(queue), VO, ce) for ce in ("ce1", "ce1", "ce1", "ce2", "ce2", "ce2")]
    assert made == [True, True, False, True, True, True]
    assert not match(limits, groups, pilot(queue), VO, "ce2"), "the site has its five"
    assert sorted(PilotCE.objects.values_list("ces", flat=True)) == [["ce1"], ["ce1"], ["ce2"], ["ce2"], ["ce2"]]


def test_a_pilot_at_several_ces_has_to_pass_the_limits_of_each_and_counts_at_each(queue: ComputingQueue, limits: Limits) -> None:
    configure("RUNNING_COUNT_PERIOD", "0s")
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"CEs": {"ce1": {"vo": {"demo": 2}}, "ce2": {"vo": {"demo": 3}}}}}')
    groups = jobs(9)
    assert match(limits, groups, pilot(queue), VO, "ce1", "ce2")
    assert match(limits, groups, pilot(queue), VO, "ce1")
    assert not match(limits, groups, pilot(queue), VO, "ce1", "ce2"), "the first CE has its two"
    assert match(limits, groups, pilot(queue), VO, "ce2", "ce3")
    assert match(limits, groups, pilot(queue), VO, "ce2")
    assert not match(limits, groups, pilot(queue), VO, "ce2"), "the one at both counts here too"
    assert PilotCE.objects.filter(ces=["ce1", "ce2"]).count() == 1


def test_of_a_pilot_at_very_many_ces_those_that_count_are_noted(queue: ComputingQueue, limits: Limits) -> None:
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"CEs": {"ce7": {"vo": {"demo": 1}}}}}')
    groups = jobs(2)
    assert match(limits, groups, pilot(queue), VO, *(f"ce{n}" for n in range(1000)))
    assert PilotCE.objects.get().ces == ["ce7"]
    assert not match(limits, groups, pilot(queue), VO, "ce7")


def test_delays_hold_for_all_processes_and_say_how_long(queue: ComputingQueue, limits: Limits) -> None:
    configure("MATCHING_DELAYS", '{"SITE_ALPHA": {"vo": {"demo": {"interval": 0.5, "burst": 2}}}}')
    other = Limits()
    assert not noted(limits, SITE, VO)
    assert not noted(other, SITE, VO)
    blocked = noted(other, SITE, VO)
    assert blocked.values == VO
    (wait_s,) = blocked.waits_s.values()
    assert 0 < wait_s <= 0.5
    time.sleep(wait_s + 0.02)
    assert not limits.at(SITE)
    assert not noted(limits, SITE, VO)


def test_what_is_rolled_back_took_nothing(queue: ComputingQueue, limits: Limits) -> None:
    configure("MATCHING_DELAYS", '{"SITE_ALPHA": {"vo": {"demo": 60}}}')
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"demo": 1}}}')
    with transaction.atomic():
        assert not noted(limits, SITE, VO)
        transaction.set_rollback(True)
    assert not limits.at(SITE), "this process knows it at once"
    assert not noted(limits, SITE, VO)
    assert limits.at(SITE).values == VO
    assert noted(Limits(), SITE, VO)


def test_limits_that_are_configured_no_more_leave_no_rows(queue: ComputingQueue, limits: Limits) -> None:
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"demo": 1, "cms": 3}}}')
    limits.at(SITE)
    assert MatchGauge.objects.count() == 2
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"demo": 1}}}')
    limits.at(SITE)
    assert [gauge.value for gauge in MatchGauge.objects.all()] == ["demo"]


def test_a_setting_that_cannot_be_meant_is_refused_with_its_place(queue: ComputingQueue) -> None:
    with pytest.raises(BadConfig, match=r"SITE_ALPHA\.vo\.demo: a whole number"):
        configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"demo": -1}}}')
    with pytest.raises(BadConfig, match="the nearest is vo"):
        configure("MATCHING_DELAYS", '{"SITE_ALPHA": {"vos": {"demo": 3}}}')


def test_every_attribute_that_may_be_limited_is_counted(queue: ComputingQueue) -> None:
    said = {
        "tags": ["GPU", "HIMEM"],
        "jobTypes": ["Simulation"],
        "stations": ["st1"],
        "pilotTypes": ["private"],
        "gridCEs": ["ce1"],
    }
    groups = jobs(2)
    task = Task.objects.get()
    TaskParams.objects.filter(task=task).update(task_params={**task.params.task_params, **said, "setup": "LHCb-Production"})
    Task.objects.update(working_group="higgs", gshare="Express", architecture="x86_64-centos7-gcc8-opt")
    for _ in range(2):
        assert lease(groups, pilot(queue), uuid4(), 60.0)
    expected = {
        *(("owner", "ada"), ("owner_group", "higgs"), ("vo", "demo"), ("setup", "LHCb-Production"), ("job_types", "Simulation")),
        *(("tags", "GPU"), ("tags", "HIMEM"), ("stations", "st1"), ("pilot_types", "private"), ("grid_ces", "ce1")),
        *(("platforms", "x86_64-centos7-gcc8-opt"), ("prod_source_label", "user"), ("gshare", "Express")),
    }
    counts = held_slots(SITE, [Limited(*each) for each in expected])
    assert {each: counts[Limited(*each)] for each in expected} == dict.fromkeys(expected, 2)
    assert {attribute for attribute, _ in expected} == set(ATTRIBUTES)


def test_what_another_thread_forgets_while_tasks_are_read_is_counted_all_the_same(
    queue: ComputingQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs(1)
    submitted(reading("second", "limited.in", nFilesPerJob=1))
    run_agents(1)
    groups = sorted(set(Job.objects.values_list("task_queue_id", flat=True)))
    for _ in range(2):
        assert lease(groups, pilot(queue), uuid4(), 60.0)
    read = held_slots_module._values

    def read_while_another_forgets(task: Mapping[str, Any]) -> Any:
        forget_tasks()
        return read(task)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(held_slots_module, "_values", read_while_another_forgets)
        assert held_slots(SITE, [Limited("owner", "ada")])[Limited("owner", "ada")] == 2
    monkeypatch.setattr(held_slots_module, "KNOWN_S", 0.0)

    def count(_: int) -> set[int]:
        try:
            return {held_slots(SITE, [Limited("owner", "ada")])[Limited("owner", "ada")] for _ in range(100)}
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(count, range(4))) == [{2}] * 4


def test_processes_that_match_at_once_never_pass_a_limit_and_reach_it(queue: ComputingQueue) -> None:
    configure("RUNNING_COUNT_PERIOD", "20ms")
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"demo": 23}, "owner": {"ada": 40}}}')
    groups = jobs(60)
    holders = [[pilot(queue, f"{n}-{i}") for i in range(30)] for n in range(PROCESSES)]
    connections.close_all()  # a forked process must not share them
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        made = pool.starmap(_match_for, [(groups, mine, 1.5) for mine in holders])
    assert sum(made) == 23
    assert Job.objects.filter(status="sent").count() == 23


def test_processes_that_match_at_once_keep_to_a_delay(queue: ComputingQueue) -> None:
    configure("MATCHING_DELAYS", '{"SITE_ALPHA": {"vo": {"demo": {"interval": 0.2, "burst": 3}}}}')
    groups = jobs(60)
    holders = [[pilot(queue, f"{n}-{i}") for i in range(30)] for n in range(PROCESSES)]
    connections.close_all()
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        pool.starmap(_match_for, [(groups, mine, 2.0) for mine in holders])
    times = sorted(at.timestamp() for at in Job.objects.filter(status="sent").values_list("status_since", flat=True))
    assert len(times) >= 3 + 6, "a busy machine may miss some"
    for first in range(len(times) - 3):
        assert times[first + 3] - times[first] > 0.2 - 0.1, "the clock of a lease is that of the beginning of its transaction"
    assert len(times) <= 3 + (times[-1] - times[0]) / 0.2 + 1


def _match_for(groups: list[int], holders: list[UUID], seconds: float) -> int:
    limits, made, until = Limits(), 0, time.monotonic() + seconds
    while time.monotonic() < until and made < len(holders):
        if match(limits, groups, holders[made], {**VO, **OWNER}):
            made += 1
        else:
            time.sleep(0.01)
    connection.close()
    return made


def test_matches_of_different_values_at_once_never_wait_in_a_ring(queue: ComputingQueue) -> None:
    configure("RUNNING_COUNT_PERIOD", "0s")
    configure("RUNNING_LIMITS", '{"SITE_ALPHA": {"vo": {"demo": 9000, "cms": 9000}, "owner": {"ada": 9000, "bob": 9000}}}')
    sets = [{"vo": frozenset({vo}), "owner": frozenset({owner})} for vo in ("demo", "cms") for owner in ("ada", "bob")]

    assert not Limits().at(SITE), "the first look counts the jobs"

    def hammer(values: dict[str, frozenset[str]]) -> list[Held]:
        mine = Limits()
        return [held for _ in range(40) if (held := mine.at(SITE) or noted(mine, SITE, values))]

    assert together(*(partial(hammer, values) for values in sets)) == [[]] * 4
