"""A change of the configuration is seen by every thread and every process within seconds, and only once it is committed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from urllib.parse import quote

import pytest
from django.db import connection, transaction
from pytest_django import DjangoAssertNumQueries

from broker_site.foundation import gdpconfig
from broker_site.foundation.gdpconfig import reading

pytestmark = [pytest.mark.django_db(transaction=True)]

CAP = ("jobbroker", "NQUEUED_SAT_CAP")
WITHIN_S = 5.0

OTHER_PROCESS = """
import sys, time
import django
django.setup()
from broker_site.foundation import gdpconfig
seen, limit = None, time.monotonic() + 20
while time.monotonic() < limit:
    now = gdpconfig.value("gdpconfig", "CACHE_PERIOD")
    if now != seen:
        seen = now
        print(now, gdpconfig.revision(), flush=True)
    time.sleep(0.02)
"""


def set_cap(value: int) -> None:
    gdpconfig.set_override(*CAP, value, who="ann", why="tests")


def test_another_process_sees_a_change_within_seconds() -> None:
    place = connection.settings_dict
    login = f"{quote(place['USER'])}:{quote(place['PASSWORD'])}"
    url = f"postgresql://{login}@/{quote(place['NAME'])}?host={quote(str(place['HOST']), safe='')}&port={place['PORT']}"
    environment = {
        **os.environ,
        "DATABASE_URL": url,
        "GRIDBROKER_PROFILE": "local",
        "DJANGO_SETTINGS_MODULE": "broker_site.settings",
    }
    other = subprocess.Popen([sys.executable, "-c", OTHER_PROCESS], env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "1.0 0\n"
        began = time.monotonic()
        gdpconfig.set_override("gdpconfig", "CACHE_PERIOD", "1500ms", who="ann", why="tests")
        assert other.stdout.readline() == "1.5 1\n"
        gdpconfig.remove_override("gdpconfig", "CACHE_PERIOD", who="ann", why="tests")
        assert other.stdout.readline() == "1.0 2\n"
        assert time.monotonic() - began < WITHIN_S
    finally:
        other.kill()
        other.communicate()


@pytest.mark.usefixtures("declared")
def test_all_threads_see_a_change_and_never_go_back() -> None:
    start, stop = Barrier(5), Event()

    def read() -> list[int]:
        seen = []
        try:
            start.wait()
            last = False
            while not last:
                last = stop.is_set()  # once more after the process knows the newest: this thread may have slept till then
                config = gdpconfig.current()
                assert config.value(*CAP) == (300 if config.revision == 0 else config.revision)
                seen.append(config.revision)
        finally:
            connection.close()
        return seen

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(4)]
        start.wait()
        for revision in range(1, 21):
            set_cap(revision)
            time.sleep(0.01)
        wait_until(lambda: gdpconfig.revision() == 20)
        time.sleep(0.05)
        stop.set()
        for reader in readers:
            seen = reader.result()
            assert seen == sorted(seen)
            assert seen[-1] == 20


@pytest.mark.usefixtures("declared")
def test_what_is_not_committed_is_seen_by_nobody_else() -> None:
    def elsewhere() -> int:
        try:
            gdpconfig.forget()
            found = gdpconfig.value(*CAP)
            assert isinstance(found, int)
            return found
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            set_cap(150)
            assert gdpconfig.value(*CAP) == 150
            assert pool.submit(elsewhere).result() == 300
            assert gdpconfig.value(*CAP) == 150
        assert pool.submit(elsewhere).result() == 150


@pytest.mark.usefixtures("declared")
def test_a_transaction_reads_once_after_each_of_its_changes_and_after_each_that_it_undoes(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    def read(queries: int) -> object:
        with django_assert_num_queries(queries):
            return gdpconfig.value(*CAP)

    with transaction.atomic():
        set_cap(150)
        assert (read(1), read(0)) == (150, 150)
        with transaction.atomic():
            set_cap(200)
            set_cap(250)
            assert (read(1), read(0)) == (250, 250)
            transaction.set_rollback(True)
        assert (read(1), read(0)) == (150, 150)
        set_cap(200)
        assert (read(1), read(0)) == (200, 200)
        transaction.set_rollback(True)
    assert gdpconfig.value(*CAP) == 300


@pytest.mark.usefixtures("declared")
def test_a_revision_that_was_rolled_back_and_made_again_is_not_taken_for_the_same() -> None:
    set_cap(100)
    with transaction.atomic():
        set_cap(200)
        transaction.set_rollback(True)
    # A copy that somebody kept from the lost revision 2: the next reading must notice the other revision 2.
    set_cap(300)
    lost = reading._Copy(gdpconfig.Config(2), (2, "1"), until=-1e9)
    reading._copy = lost
    assert gdpconfig.revision() == 2
    assert gdpconfig.value(*CAP) == 300
    assert reading._copy is not lost


@pytest.mark.usefixtures("declared")
def test_a_copy_is_kept_at_most_as_long_as_its_period_says() -> None:
    gdpconfig.set_override("gdpconfig", "CACHE_PERIOD", "200ms", who="ann", why="tests")
    gdpconfig.value(*CAP)

    def elsewhere() -> None:
        try:
            # As another process does it: without telling this one.
            before = reading._copy
            set_cap(7)
            reading._copy = before
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(elsewhere).result()
    began = time.monotonic()
    wait_until(lambda: gdpconfig.value(*CAP) == 7)
    assert time.monotonic() - began < 1.0


@pytest.mark.parametrize("value", [11, 12, 13])
@pytest.mark.django_db(transaction=True)
def test_a_test_that_empties_the_tables_leaves_nothing_to_the_next(value: int) -> None:
    assert gdpconfig.value("jobsplitter", "MAX_FILES_PER_JOB") not in (11, 12, 13)
    gdpconfig.set_override("jobsplitter", "MAX_FILES_PER_JOB", value, who="ann", why="tests")
    assert gdpconfig.value("jobsplitter", "MAX_FILES_PER_JOB") == value


@pytest.mark.parametrize("value", [11, 12, 13])
@pytest.mark.django_db(transaction=False)
def test_a_test_that_is_rolled_back_leaves_nothing_to_the_next(value: int) -> None:
    assert gdpconfig.value("jobsplitter", "MAX_FILES_PER_JOB") not in (11, 12, 13)
    gdpconfig.set_override("jobsplitter", "MAX_FILES_PER_JOB", value, who="ann", why="tests")
    assert gdpconfig.value("jobsplitter", "MAX_FILES_PER_JOB") == value


def wait_until(true: Callable[[], bool]) -> None:
    limit = time.monotonic() + WITHIN_S
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.01)
