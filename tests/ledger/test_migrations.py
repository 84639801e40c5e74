"""A new database and one that has been brought up to date step by step are the same."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from urllib.parse import urlsplit

import psycopg2
import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from broker_site.roof.management.commands.states import GUARDED
from brokerage.models import Job
from tests.builders import grid, parameters, submitted
from tests.flow.steps import end, run_agents, take

STEP_BY_STEP = """
import django
django.setup()
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
executor = MigrationExecutor(connection)
executor.loader = MigrationLoader(connection, replace_migrations=False)
executor.migrate([node for node in executor.loader.graph.leaf_nodes() if not executor.loader.disk_migrations[node].replaces])
"""
AT_ONCE = "from django.core.management import execute_from_command_line as run; run(['manage.py', 'migrate', '--verbosity', '0'])"

HASH = r"regexp_replace({}, '_[0-9a-f]{{8}}(?=_| |$)', '_HASH')"
SCHEMA = f"""
SELECT table_name || '.' || column_name,
    concat_ws(' ', data_type, character_maximum_length, is_nullable, column_default, is_identity)
FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL SELECT conrelid::regclass || ' ' || {HASH.format("conname")}, pg_get_constraintdef(oid)
FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT {HASH.format("indexname")}, {HASH.format("indexdef")} FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
UNION ALL SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT {HASH.format("relname")}, reloptions::text FROM pg_class WHERE relnamespace = 'public'::regnamespace
UNION ALL SELECT 'work queue ' || queue_name, concat_ws(' ', queue_type, vo, queue_order) FROM workqueues_workqueue
ORDER BY 1, 2
"""


@pytest.mark.long
def test_a_new_database_is_as_one_that_took_every_step(database_url: str) -> None:
    assert _schema(database_url, "steps", STEP_BY_STEP) == _schema(database_url, "at_once", AT_ONCE)


@pytest.mark.long
def test_a_database_that_took_every_step_needs_none_of_the_migration_of_new_ones(database_url: str) -> None:
    before = _schema(database_url, "steps_first", STEP_BY_STEP)
    assert _schema(database_url, "steps_first", AT_ONCE, new=False) == before


@pytest.mark.django_db(transaction=True)
def test_an_index_whose_making_was_killed_is_made_anew() -> None:
    """It is made beside those who work, so nothing takes it back: it stays behind, and serves nobody."""
    executor, step = MigrationExecutor(connection), ("brokerage", "0040_who_used_a_file")
    before = executor.loader.project_state(step, at_end=False)
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX job_input_used_shared")
        cursor.execute("CREATE INDEX job_input_used_shared ON brokerage_jobinput (file_id) WHERE false")
        with connection.schema_editor(atomic=False) as editor:
            executor.loader.get_migration(*step).apply(before, editor)
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'job_input_used_shared'")
        assert "event_range_id IS NOT NULL" in str(cursor.fetchall())


@pytest.mark.django_db(transaction=True)
def test_where_outputs_go_moves_to_the_rows_of_all_jobs_and_back(to_the_newest: None) -> None:
    alpha, beta = grid("ALPHA", "BETA")
    submitted(parameters("t", binding="late"))
    run_agents(names=("refine", "feed", "assign", "generate"))
    ended, held = take(alpha), take(beta)
    end(ended)
    before = set(Job.objects.values_list("id", "status", "storage"))
    assert before >= {(ended.job_id, "finished", "ALPHA_DISK"), (held.job_id, "running", "BETA_DISK")}
    assert sorted(storage for _, _, storage in before) == ["", "", "ALPHA_DISK", "BETA_DISK"]
    MigrationExecutor(connection).migrate([("brokerage", "0050_requirement_place_own_datasets")])
    with connection.cursor() as cursor:
        cursor.execute("SELECT j.id, j.status, s.storage FROM brokerage_job j JOIN brokerage_jobspec s ON s.job_id = j.id")
        assert set(cursor.fetchall()) == before
        cursor.execute("UPDATE brokerage_jobspec SET storage = 'GAMMA_DISK' WHERE job_id = %s", [ended.job_id])
    MigrationExecutor(connection).migrate([("brokerage", "0051_where_outputs_go")])
    moved = {(ended.job_id, "finished", "GAMMA_DISK")}
    assert set(Job.objects.values_list("id", "status", "storage")) == {job for job in before if job[0] != ended.job_id} | moved


@pytest.mark.django_db(transaction=True)
def test_the_guard_of_every_machine_is_made_anew(to_the_newest: None) -> None:
    """A new database has them from the code as it is: one that is older has to come to the same."""
    triggers = "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname ~ '_(guard|birth)$' ORDER BY 1"
    with connection.cursor() as cursor:
        cursor.execute(triggers)
        new = cursor.fetchall()
    assert len(new) == 2 * len(GUARDED)
    MigrationExecutor(connection).migrate([("brokerage", "0051_where_outputs_go"), ("workqueues", "0044_child_replaced_at")])
    with connection.cursor() as cursor:
        for machine, table, _ in GUARDED:
            cursor.execute(machine.unguard_sql(table))
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())
    with connection.cursor() as cursor:
        cursor.execute(triggers)
        assert cursor.fetchall() == new


def _schema(server: str, name: str, migrate: str, *, new: bool = True) -> list[tuple[str, str | None]]:
    """All that the database of this name consists of, after that code has run on it."""
    if new:
        with closing(psycopg2.connect(server)) as connection, connection.cursor() as cursor:
            connection.autocommit = True
            cursor.execute(f"DROP DATABASE IF EXISTS {name}")
            cursor.execute(f"CREATE DATABASE {name}")
    url = urlsplit(server)._replace(path=f"/{name}").geturl()
    env = os.environ | {"DATABASE_URL": url, "GRIDBROKER_PROFILE": "local", "DJANGO_SETTINGS_MODULE": "broker_site.settings"}
    subprocess.run([sys.executable, "-c", migrate], env=env, check=True)
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(SCHEMA)
        return cursor.fetchall()
