"""What all tests share: private PostgreSQL and Redis, begun by the first test that needs them, and the browser of the page tests.

Every worker of a parallel run uses the same two servers, with a database and a Redis number of its own; the last to leave stops
them. With DATABASE_URL or REDIS_URL set, those servers are used. A crashed run leaves servers that the next one finds and uses.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING

import psutil
import psycopg2
import pytest
import pytest_django.fixtures
from django.conf import settings
from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor
from django.urls import set_urlconf
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from benchmarks.server import TABLES
from broker_site.env import Env
from broker_site.roof.embedded import Instance, NoPlace, Services
from broker_site.roof.embedded.postgres import OWNER
from tests.tables import Tables

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

INSTANCE = "test"
HOW_TO_INSTALL = "page tests need chromium on PATH; on Debian: apt-get install chromium"
PATIENCE_MS = 30_000
"""How long an expectation waits, as long as a click does; a loaded machine is slow."""
CHROMIUM_FLAGS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

ALONE = "SELECT pg_advisory_lock(1)"
MAY_FILL = f"GRANT SET ON PARAMETER session_replication_role TO {OWNER}"
"""Tables that are filled as after months of work need not be guarded; the roles that the system runs as are not the owner."""

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
"""A run starts dozens of Python processes, and each would compile everything anew."""

gc.disable()
"""Until all tests are collected, there is little garbage, and ever more to look through for it."""

for profile in ("usual", "thorough"):
    # Speed is measured in `benchmarks/`: how long an example takes says only how busy the machine is.
    hypothesis_settings.register_profile(profile, deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("usual")
"""`--hypothesis-profile thorough`: what a usual run samples is tried many more times; such tests are marked `long` then."""

LONGEST = (
    "tests/scenarios/",
    "tests/chaos/test_kill.py",
    "tests/chaos/test_tree.py",
    "tests/chaos/test_restore.py",
    "tests/benchmarks/",
    "tests/steady/",
)
"""Tests of minutes that mostly wait. None of them has a test's database; after the others, each would keep one worker alone."""

chromium_missing = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pictures", metavar="FOLDER", help="where tests that draw what they saw write their SVG files")


def pytest_configure() -> None:
    """Other routes for a test leave alone what is known of the usual ones: Django keeps both by the name of their module."""
    from django.test.signals import root_urlconf_changed, setting_changed

    setting_changed.disconnect(root_urlconf_changed)
    setting_changed.connect(_other_routes)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest come first, and so on one worker: two of them at once would slow each other down."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


def _other_routes(*, setting: str, **_: object) -> None:
    if setting == "ROOT_URLCONF":
        set_urlconf(None)


def pytest_collection_finish() -> None:
    """What is loaded until here lives to the end: to look through it again and again for garbage takes a tenth of the run."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
    gc.enable()


@pytest.fixture(scope="session")
def services() -> Iterator[Services]:
    """The private servers of this test run (or those that the environment names)."""
    instance = Instance(INSTANCE)
    services = instance.start(need_redis=False)
    if instance.postgres:
        with instance.postgres.administer() as connection, connection.cursor() as cursor:
            cursor.execute(ALONE)  # no two workers at once
            cursor.execute(MAY_FILL)
    yield services
    instance.stop()


@pytest.fixture(scope="session")
def database_url(services: Services) -> str:
    """A PostgreSQL server for tests that connect by themselves; its database is not the one of Django's tests."""
    return services.database_url


@pytest.fixture(scope="session")
def redis_url(services: Services, request: pytest.FixtureRequest) -> str:
    """A Redis database that no other worker of this run uses."""
    if not services.redis_url:
        raise NoPlace("no Redis for the tests: set REDIS_URL, or install redis-server or valkey-server")
    worker = getattr(request.config, "workerinput", {}).get("workerid", "gw0")
    server, _, _ = services.redis_url.rpartition("/")
    return f"{server}/{int(worker.removeprefix('gw')) % 16}"


@pytest.fixture(scope="session")
def tables(services: Services) -> Tables | None:
    """The tables to copy; a server that the environment names keeps none."""
    return None if os.environ.get("DATABASE_URL") else Tables(services.database_url)


@pytest.fixture(scope="session")
def own_database(services: Services, redis_url: str, tables: Tables | None) -> Iterator[dict[str, str]]:
    """The environment of a program that makes a database of its own on these servers; it copies the tables that are there."""
    environment = {**os.environ, "DATABASE_URL": services.database_url, "REDIS_URL": redis_url}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    name = f"bench_{os.getpid()}_tables"
    with tables.copied(name) if tables else nullcontext(False) as there:
        yield environment | ({TABLES: name} if there else {})


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    services: Services, tables: Tables | None, django_db_modify_db_settings_parallel_suffix: None
) -> Iterator[None]:
    """Point Django at the private PostgreSQL before it makes the test database."""
    database = Env.read({"GRIDBROKER_PROFILE": "local", "DATABASE_URL": services.database_url}).database
    if database is None:
        raise NoPlace("the private PostgreSQL gave no URL")
    for entry in settings.DATABASES.values():
        entry.update(NAME=database.name, USER=database.user, PASSWORD=database.password, HOST=database.host, PORT=database.port)
    _drop_databases_of_dead_runs(services.database_url)
    settings.DATABASES["default"]["TEST"]["NAME"] = f"test_{os.getpid()}"  # two runs at once do not share one
    settings.DATABASES["default"]["TEST"]["TEMPLATE"] = tables.begin() if tables else None
    # A run of one file may have tests alone that share a campaign: pytest-django sees no test there that asks for the database.
    wanted = pytest_django.fixtures._get_databases_for_setup
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pytest_django.fixtures, wanted.__name__, lambda items: (wanted(items)[0] | {"default"}, wanted(items)[1]))
        yield


def _drop_databases_of_dead_runs(url: str) -> None:
    """A killed run leaves its database behind."""
    connection = psycopg2.connect(url)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database WHERE datname ~ '^test_[0-9]+$'")
        for (name,) in cursor.fetchall():
            if not psutil.pid_exists(int(name.removeprefix("test_"))):
                cursor.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
    connection.close()


@pytest.fixture(scope="session")
def django_db_setup(tables: Tables | None, django_db_setup: None) -> Iterator[None]:
    """Empty only written tables; close what the read-only alias left open, so that the test database can be dropped."""
    from django.test import TransactionTestCase

    from tests.emptying import empty_tables

    if tables:
        connections.close_all()
        tables.end(settings.DATABASES["default"]["NAME"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", empty_tables)
        yield
    connections.close_all()


@pytest.fixture
def redis_settings(redis_url: str, settings: pytest.FixtureRequest) -> Iterator[str]:
    """Point Django's settings at the private Redis for one test; the URL. No client outlives it: later ones would wait."""
    from broker_site.foundation.agency.look import _redis

    _redis.cache_clear()
    settings.REDIS_URL = redis_url  # type: ignore[attr-defined]
    yield redis_url
    _redis.cache_clear()


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """Chromium without a window; the tests that want it are skipped where there is none, and fail with CI=true.

    Playwright's loop lives in this thread, and while it does, Django has other connections here than before and after. So it
    ends with its module: tests that follow would leave connections behind that nobody closes any more.
    """
    chromium = shutil.which("chromium")
    if chromium is None:
        request.config.stash[chromium_missing] = True
        if os.environ.get("CI") == "true":
            pytest.fail(HOW_TO_INSTALL, pytrace=False)
        pytest.skip(HOW_TO_INSTALL)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    flags = [*CHROMIUM_FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Django would refuse the ORM calls that tests make between clicks.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        running = playwright.chromium.launch(executable_path=chromium, args=flags)
        yield running
        running.close()
        connections.close_all()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A fresh browser page; its console errors and failed requests fail the test.

    Wait with `expect`: a text that `wait_for_function` evaluates again and again is blocked by the content security policy.
    """
    context = browser.new_context()
    opened = context.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(f"script error: {error}"))
    opened.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    yield opened
    context.close()
    assert not problems, "\n".join(problems)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say at the end what tests have told (`record_property("told", line)`), and how to get the page tests that were skipped."""
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in getattr(report, "user_properties", ()):
            if name == "told" and report.when == "call":
                terminalreporter.write_line(str(value))
    skipped = terminalreporter.stats.get("skipped", [])
    if config.stash.get(chromium_missing, False) or any(HOW_TO_INSTALL in str(report.longrepr) for report in skipped):
        terminalreporter.write_line(f"skipped: {HOW_TO_INSTALL}")


@pytest.fixture(autouse=True)
def nothing_known_of_the_grid() -> Iterator[None]:
    """What a process keeps of queues, task queues and limits goes with the test: others get their names and numbers again."""
    yield
    memories = ("queries.waiting", "WAITING"), ("queries.pilots", "QUEUES"), ("queries.unknown_sites", "SITE_NAMES")
    for module, kept in (*memories, ("ledger.match_limits", "LIMITS")):
        if loaded := sys.modules.get(f"brokerage.{module}"):
            getattr(loaded, kept).forget()


@pytest.fixture
def to_the_newest(transactional_db: None) -> Iterator[None]:
    """The tables are as they were afterwards, those too of apps that stand on what was taken back."""
    yield
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())
