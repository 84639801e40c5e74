"""The statement that passes limits and counts itself does what the rule says, also where it had to wait for another match."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker_site.foundation.gdpconfig import set_override
from brokerage.ledger.lease import Ask, HeldAtMost, lease
from brokerage.ledger.match_gauges import passing
from brokerage.ledger.match_limits import Limits
from brokerage.models import Job, MatchGauge, Site
from brokerage.rules.dispatch.match_limits import Delay, Gauge, Limited, SiteRules, held, matched
from tests.builders import grid, parameters, pilot, submitted
from tests.flow.steps import ASKED, MATCH, run_agents

SITE = "SITE_ALPHA"
VO = {"vo": frozenset({"demo"})}
LIMITED = [Limited("vo", "demo"), Limited("owner", "ada"), Limited("vo", "demo", "ce1")]
# Delays end seconds before or after now, never at it: the database's clock goes on while the rule is asked.
GAUGES = st.builds(
    Gauge, st.integers(0, 4), st.integers(0, 4), st.sampled_from([0.0, -100.0, -5.0, 5.0, 15.0, 25.0, 35.0]), st.booleans()
)
MOST = st.none() | st.integers(0, 8)
DELAYS = st.none() | st.builds(Delay, st.sampled_from([10.0, 20.0]), st.integers(1, 3))


@pytest.fixture
def site() -> None:
    Site.objects.create(name=SITE)


@pytest.mark.django_db
@pytest.mark.usefixtures("site")
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(LIMITED), st.tuples(GAUGES, MOST, DELAYS), min_size=1))
def test_the_statement_passes_and_counts_as_the_rule_does(drawn: dict[Limited, tuple[Gauge, int | None, Delay | None]]) -> None:
    rules = SiteRules(
        {on: most for on, (_, most, _) in drawn.items() if most is not None},
        {on: delay for on, (_, _, delay) in drawn.items() if delay is not None},
    )
    limits = sorted(drawn)
    now = _now()
    gauges = {on: gauge if not gauge.free_at else _moved(gauge, now) for on, (gauge, _, _) in drawn.items()}
    MatchGauge.objects.all().delete()
    ids = [_row(on, gauges[on]) for on in limits]
    before = _stored(ids, limits)

    asked = passing(limits, rules, ids)

    ((passed,),) = ASKED.run(*asked.columns)
    counted = _counted(asked.gauges)

    assert (passed, counted) == (not held(limits, rules, gauges, now),) * 2
    expected = matched(limits, rules, before, now) if passed else before
    for on, gauge in _stored(ids, limits).items():
        assert gauge.matched == expected[on].matched
        assert gauge.free_at == pytest.approx(expected[on].free_at, abs=2)


def _counted(columns: tuple[Any, ...]) -> bool:
    try:
        with transaction.atomic():
            MATCH.run(str(uuid4()), str(uuid4()), *columns)
    except IntegrityError:
        return False
    return True


def _moved(gauge: Gauge, now: float) -> Gauge:
    return Gauge(gauge.running, gauge.matched, now + gauge.free_at, gauge.counted)


def _now() -> float:
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        return float(cursor.fetchone()[0])


def _row(on: Limited, gauge: Gauge) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO brokerage_matchgauge (site_id, attribute, value, ce, running, matched, counted_at, free_at)"
            " VALUES (%s, %s, %s, %s, %s, %s, CASE WHEN %s THEN now() END, to_timestamp(nullif(%s, 0))) RETURNING id",
            [SITE, *on, gauge.running, gauge.matched, gauge.counted, gauge.free_at],
        )
        return int(cursor.fetchone()[0])


def _stored(ids: list[int], limits: list[Limited]) -> Mapping[Limited, Gauge]:
    rows = MatchGauge.objects.in_bulk(ids)
    found = {}
    for on, id_ in zip(limits, ids, strict=True):
        row = rows[id_]
        free_at = row.free_at.timestamp() if row.free_at else 0.0
        found[on] = Gauge(row.running, row.matched, free_at, row.counted_at is not None)
    return found


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("most", "got"), [(3, 1), (2, 0)])
def test_who_waited_for_another_match_sees_it(most: int, got: int) -> None:
    """The statement began before the other match was committed, and goes on after it: what it read first is old."""
    (queue,) = grid("ALPHA")
    set_override("dispatch", "RUNNING_LIMITS", {SITE: {"vo": {"demo": most}}}, who="ada", why="test")
    submitted(parameters("limited", nEvents=40, nEventsPerJob=10))
    run_agents()
    limits, holders = Limits(), [pilot(queue, str(n)) for n in range(3)]
    (group,) = set(Job.objects.filter(status="activated").values_list("task_queue_id", flat=True))

    def match(n: int) -> bool:
        request = uuid4()
        ask = Ask(group, holders[n], request, 60.0, HeldAtMost(), limits=limits.passing(SITE, VO))
        return lease([ask], holders[n], request, 60.0) is not None

    assert not limits.at(SITE)
    assert match(0)
    waited: list[bool] = []

    def second() -> None:
        waited.append(match(2))
        connection.close()

    with transaction.atomic():
        assert match(1)
        thread = threading.Thread(target=second)
        thread.start()
        _wait_for_a_lock()
        assert not waited
    thread.join(10)
    assert waited == [bool(got)]
    assert Job.objects.filter(status="sent").count() == MatchGauge.objects.get().matched == 2 + got


def _wait_for_a_lock() -> None:
    until = time.monotonic() + 10
    with connection.cursor() as cursor:
        while time.monotonic() < until:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0]:
                return
            time.sleep(0.01)
    raise AssertionError("nobody waits")
