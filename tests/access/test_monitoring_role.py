"""The role that pages read as: it sees what they show, no secret and no session, and changes nothing.

And three roles side by side: who may change rows, the audit and the tables.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import ExitStack, closing
from urllib.parse import urlsplit

import psycopg2
import pytest
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, connection, connections
from django.test import Client
from psycopg2.errors import InsufficientPrivilege
from pytest_django import Settings

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.database_rights import check_monitoring_rights
from broker_site.foundation.access.models import Credential, User
from broker_site.foundation.access.principal import SYSTEM, Principal
from broker_site.foundation.access.seals import seal
from broker_site.foundation.gdpconfig.changesets import Draft, named_line
from broker_site.foundation.gdpconfig.proposals import propose
from broker_site.foundation.gdpconfig.store import apply
from broker_site.foundation.kernel import clock
from broker_site.foundation.sql.roles import APPLICATION, MONITORING
from broker_site.roof.embedded import Services
from brokerage.ledger.bulk import Wish, start
from brokerage.models import Job
from tests.pages.scene import make_scene, visitor
from tests.pages.test_accessibility import addresses
from workqueues.models import Task

pytestmark = pytest.mark.django_db(transaction=True, databases="__all__")

OTHER_PAGES = (
    *("me", "me/tokens", "datasets", "files", "shares", "users", "errors", "throughput", "throttle", "transfers", "links"),
    *("changes", "config", "glossary", "api", "search", "compare/tasks", "compare/queues"),
)

Roles = dict[str, psycopg2.extensions.connection]


@pytest.fixture
def roles(services: Services, db: None) -> Iterator[Roles]:
    """A connection of each role, to the database of the tests."""
    call_command("db_roles", "--apply", stdout=io.StringIO())
    urls = {"owner": services.database_url, "application": services.application_url, "monitoring": services.monitoring_url}
    with ExitStack() as stack:
        opened = {}
        for name, url in urls.items():
            here = urlsplit(url)._replace(path=f"/{connection.settings_dict['NAME']}").geturl()
            opened[name] = stack.enter_context(closing(psycopg2.connect(here)))
            opened[name].autocommit = True
        yield opened


@pytest.fixture
def as_monitoring(roles: Roles, services: Services, settings: Settings) -> Iterator[None]:
    """Pages read as that role, through the connection of production."""
    parts, alias = urlsplit(services.monitoring_url), connections["monitoring"]
    before = {name: alias.settings_dict[name] for name in ("USER", "PASSWORD")}
    alias.close()
    alias.settings_dict.update(USER=parts.username, PASSWORD=parts.password)
    settings.MONITORING_DATABASE = "monitoring"
    yield
    alias.close()
    alias.settings_dict.update(before)


ADD = (
    "INSERT INTO access_audit (who, kind, prefix, vo, act, object, outcome, reason, trace_id)"
    " VALUES ('x', 'user', '', '', 'test.act', 'thing', 'done', '', '')"
)
ROWS = [
    "INSERT INTO agency_writeprobe (id, at, filler) VALUES (7, now(), '')",
    "UPDATE workqueues_task SET status = status",
    "DELETE FROM brokerage_jobchange",
    "SELECT id FROM workqueues_task FOR UPDATE",
    "SELECT nextval(pg_get_serial_sequence('workqueues_task', 'id'))",
    ADD,
    "TRUNCATE agency_writeprobe",
]
AUDIT = ["UPDATE access_audit SET who = 'nobody'", "DELETE FROM access_auditseal", "TRUNCATE access_audit"]
TABLES = [
    "TRUNCATE workqueues_task CASCADE",
    "CREATE TABLE mine (x int)",
    "ALTER TABLE workqueues_task ADD COLUMN mine int",
    "ALTER TABLE access_audit DISABLE TRIGGER ALL",
    "ALTER TRIGGER access_audit_append_only ON access_audit RENAME TO mine",
    "CREATE INDEX mine ON workqueues_task (id)",
    "DROP TABLE brokerage_jobchange",
    "CREATE SCHEMA mine",
    "SET ROLE gridbroker",
]
OTHERS = ["SET ROLE gridbroker_application", "SET session_replication_role = replica", "CREATE ROLE mine"]


@pytest.mark.parametrize("statement", [*ROWS, *AUDIT, *TABLES, *OTHERS])
def test_monitoring_changes_nothing(roles: Roles, statement: str) -> None:
    with roles["monitoring"].cursor() as cursor, pytest.raises(InsufficientPrivilege):
        cursor.execute(f"SET default_transaction_read_only = off; {statement}")


def test_the_application_changes_rows_and_neither_audit_nor_tables(roles: Roles) -> None:
    with roles["application"].cursor() as cursor:
        for statement in ROWS:
            cursor.execute(statement)
        for statement in (*AUDIT, *TABLES):
            with pytest.raises(InsufficientPrivilege):
                cursor.execute(statement)


def test_the_owner_makes_tables(roles: Roles) -> None:
    owner = roles["owner"]
    owner.autocommit = False
    with owner.cursor() as cursor:
        for statement in TABLES:
            cursor.execute(f"SAVEPOINT one; {statement}; ROLLBACK TO one")
        cursor.execute("CREATE TABLE mine (x int); INSERT INTO mine VALUES (7); SELECT x FROM mine")
        assert cursor.fetchall() == [(7,)]
    owner.rollback()


@pytest.mark.parametrize(
    "table",
    [
        *("access_user", "access_role", "access_auditseal", "auth_group", "auth_permission"),
        *("django_session", "django_admin_log", "django_migrations"),
    ],
)
def test_secrets_sessions_and_seals_are_not_read(roles: Roles, table: str) -> None:
    with roles["monitoring"].cursor() as cursor, pytest.raises(InsufficientPrivilege):
        cursor.execute(f"SELECT FROM {table}")


@pytest.mark.parametrize("column", ["secret", "claims", "user_id", "*"])
def test_of_credentials_is_read_only_what_tells_whether_a_child_broker_is_revoked(roles: Roles, column: str) -> None:
    with roles["monitoring"].cursor() as cursor, pytest.raises(InsufficientPrivilege):
        cursor.execute(f"SELECT {column} FROM access_credential")


def test_of_all_tables_monitoring_sees_those_of_tasks_jobs_grid_configuration_and_agents(roles: Roles) -> None:
    columns = """
        SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')
          AND has_column_privilege(c.oid, a.attnum, 'SELECT') AND NOT attisdropped
    """
    with roles["monitoring"].cursor() as cursor:
        cursor.execute(columns)
        seen = {(table, column) for table, column in cursor.fetchall()}
    assert {table.partition("_")[0] for table, _ in seen} == {"workqueues", "brokerage", "gdpconfig", "agency", "access"}
    assert {pair for pair in seen if pair[0].startswith("access")} == {
        *(("access_audit", column) for column in ("at", "who", "act")),
        *(("access_credential", column) for column in ("id", "prefix", "revoked_at")),
    }


def test_every_page_is_read_as_monitoring(as_monitoring: None) -> None:
    scene = make_scene()
    audit("alert.test", SYSTEM, "thing")
    User.objects.filter(pk=visitor().pk).update(is_superuser=True)  # who sees what others have begun
    client = Client()
    client.force_login(visitor())
    jobs = [Job.objects.filter(status=status).earliest("id").id for status in ("finished", "failed", "running", "activated")]
    pages = ["/", "/tasks/", "/jobs/", "/queues/", "/agents/", f"/tasks/{scene.running.id}/brokerage/?queue=GAMMA"]
    pages += [f"/{name}.{form}" for name in ("tasks", "jobs", "queues", "agents") for form in ("json", "csv")]
    pages += [f"/{name}/" for name in OTHER_PAGES]
    pages += [f"/queues/{name}/" for name in scene.queues] + [f"/jobs/{each}/" for each in jobs]
    pages += [f"/tasks/{each.id}/{end}" for each in Task.objects.all() for end in ("", "brokerage/")]
    start(Principal("user", "bob", user=ensure_user("bob")), Wish("tasks", "pause", [scene.pending.id], clock.now()))
    apply(Draft([named_line("share", "Data", "demo", {"value": 1})], "bob", "x", "page"))
    propose(Draft([named_line("config", "feeds.FEED_MAX_LOSS", "", "0.5")], "bob", "x", "page"))
    pages += addresses(scene)
    for address in pages:
        answer = client.get(address)
        expected = 400 if address == "/bulk/new/" or address.endswith(("=many", "cpu_slots=-3")) else 200
        assert (answer.status_code, bool(answer.getvalue())) == (expected, True), address
    with connections["monitoring"].cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == (MONITORING,)
        with pytest.raises(ProgrammingError, match="permission denied"):
            Credential.objects.using("monitoring").first()


def test_check_deploy_is_silent_of_a_role_that_only_reads(as_monitoring: None) -> None:
    assert check_monitoring_rights() == []


def test_check_deploy_warns_where_pages_read_as_one_who_can_write(db: None) -> None:
    (warning,) = check_monitoring_rights()
    assert warning.id == "access.W002"
    assert "pages read as the role gridbroker, which" in warning.msg
    for what in ("may write", "may make tables", "reads credentials"):
        assert what in warning.msg
    assert "MONITORING_DATABASE_URL" in str(warning.hint)


def test_check_deploy_says_when_the_database_of_the_pages_could_not_be_asked(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.MONITORING_DATABASE = "monitoring"
    connections["monitoring"].close()
    monkeypatch.setitem(connections["monitoring"].settings_dict, "HOST", "/nowhere")
    (info,) = check_monitoring_rights()
    assert info.id == "access.I002"
    assert not info.is_serious(30)


def test_rights_that_the_role_had_before_are_taken_away(roles: Roles) -> None:
    audit("test.act", SYSTEM, "thing")
    seal()
    with roles["owner"].cursor() as cursor:
        cursor.execute(
            f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {MONITORING}; GRANT SELECT (hash) ON access_auditseal TO {MONITORING}"
        )
    assert_reads_seals(roles)
    call_command("db_roles", "--apply", stdout=io.StringIO())
    with roles["monitoring"].cursor() as cursor:
        for statement in ("SELECT hash FROM access_auditseal", "DELETE FROM agency_agent"):
            with pytest.raises(InsufficientPrivilege):
                cursor.execute(statement)


def assert_reads_seals(roles: Roles) -> None:
    with roles["monitoring"].cursor() as cursor:
        cursor.execute("SELECT hash FROM access_auditseal")
        assert cursor.rowcount == 1


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ("nobody_there", "there is no role nobody_there"),
        ("gridbroker", "the role gridbroker owns the tables"),
        (APPLICATION, f"{APPLICATION} is the role of web, worker and beat"),
    ],
)
def test_a_role_that_cannot_be_is_refused(role: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        call_command("db_roles", "--monitoring", role, "--apply")
