"""Imports, feeds and operators' overrides at once: they take turns, none is lost, none fails."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from datetime import timedelta
from threading import Thread

import pytest
from django.db import connection, connections, transaction

from broker_site.foundation.kernel import clock
from brokerage.ledger.grid import import_grid
from brokerage.ledger.grid_lock import take_turns
from brokerage.ledger.grid_overrides import end_expired, end_override, set_override
from brokerage.models import ComputingQueue, LocalOverride
from brokerage.rules.grid.update import GridUpdate, read_update
from tests.grid.conftest import GOOD

TIMES = 15


def document(maxrss: int) -> GridUpdate:
    found = copy.deepcopy(GOOD)
    found["queues"]["NORTH"]["maxrss"] = maxrss
    return read_update(found)


def at_once(*works: Callable[[int], object]) -> list[BaseException]:
    """Each work again and again, all in threads of their own: what they raised."""
    failed: list[BaseException] = []

    def run(work: Callable[[int], object]) -> None:
        try:
            for turn in range(TIMES):
                work(turn)
        except BaseException as error:  # noqa: BLE001 - told by the test
            failed.append(error)
        finally:
            connections.close_all()

    threads = [Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return failed


@pytest.mark.django_db(transaction=True)
def test_overrides_and_imports_at_once() -> None:
    import_grid(document(1000))

    def override(turn: int) -> None:
        row = LocalOverride(kind="queue", name="NORTH", attribute="maxrss", value=str(7000 + turn), reason="race")
        set_override(row)
        if turn < TIMES - 1:
            end_override(row)

    def other(turn: int) -> None:
        row = LocalOverride(kind="site", name="SOUTH", attribute="nucleus", value="true", reason="race")
        set_override(row)
        end_override(row)

    assert at_once(lambda turn: import_grid(document(2000 + turn)), override, other) == []
    import_grid(document(3000))
    assert ComputingQueue.objects.get(name="NORTH").maxrss == 7000 + TIMES - 1
    kept = LocalOverride.objects.get()
    assert kept.beneath == 3000
    end_override(kept)
    assert ComputingQueue.objects.get(name="NORTH").maxrss == 3000


@pytest.mark.django_db(transaction=True)
def test_an_override_that_is_ended_or_prolonged_meanwhile_ends_no_run_and_not_too_early() -> None:
    import_grid(document(1000))
    past, future = clock.now() - timedelta(minutes=1), clock.now() + timedelta(days=1)
    gone, longer = (
        LocalOverride(kind="queue", name="NORTH", attribute=attribute, value="7", reason="race", until=past)
        for attribute in ("maxrss", "maxtime")
    )
    set_override(gone)
    set_override(longer)
    found: list[object] = []

    def expire() -> None:
        try:
            found.append(end_expired(clock.now()))
        except LocalOverride.DoesNotExist as error:
            found.append(error)
        finally:
            connections.close_all()

    run = Thread(target=expire)
    with transaction.atomic():
        take_turns()
        run.start()
        until_somebody_waits()
        end_override(gone)
        LocalOverride.objects.filter(pk=longer.pk).update(until=future)
    run.join(60)
    assert found == [0]
    assert LocalOverride.objects.get().attribute == "maxtime"
    assert ComputingQueue.objects.get(name="NORTH").maxtime == 7


def until_somebody_waits() -> None:
    """Until another writer of the grid stands in the queue."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            if (cursor.fetchone() or (0,))[0]:
                return
        time.sleep(0.02)
    pytest.fail("nobody waits")
