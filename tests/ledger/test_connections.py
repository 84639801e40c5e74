"""A connection that the server has ended is seen before its next use: nobody gets an error for it."""

from __future__ import annotations

import io
from collections.abc import Iterator

import psycopg2
import pytest
from django.db import close_old_connections, connection
from django.http import StreamingHttpResponse

from broker_site.foundation.sql.prepared import Prepared
from broker_site.roof.web.application import STEP_BYTES, DjangoAnswer

TWO = Prepared("tests_two", "integer", "SELECT $1 + 1")


def end(pid: int) -> None:
    """End the session as a restart of the server does."""
    settings = connection.settings_dict
    with psycopg2.connect(
        dbname=settings["NAME"],
        user=settings["USER"],
        password=settings["PASSWORD"],
        host=settings["HOST"],
        port=settings["PORT"],
        options=settings["OPTIONS"].get("options", ""),
    ) as other:
        other.cursor().execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    other.close()


@pytest.mark.django_db(transaction=True)
def test_after_a_restart_of_the_database_the_next_request_gets_its_rows() -> None:
    for _ in range(2):
        close_old_connections()  # what Django does before each request
        assert TWO.run(1) == [(2,)]
        end(connection.connection.info.backend_pid)
    close_old_connections()
    assert TWO.run(1) == [(2,)]


@pytest.mark.django_db(transaction=True)
def test_an_idle_connection_that_works_is_not_asked() -> None:
    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    close_old_connections()
    before = statements(pid)
    connection.close_if_health_check_failed()
    assert statements(pid) == before


def statements(pid: int) -> str:
    """When the session's last statement began, as another session sees it."""
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT query_start::text FROM pg_stat_activity WHERE pid = %s", [pid])
            return cursor.fetchone()[0]
    finally:
        other.close()


@pytest.mark.django_db(transaction=True)
def test_an_export_goes_on_when_the_database_was_away_between_two_steps() -> None:
    def rows() -> Iterator[bytes]:
        for _ in range(3):
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                yield str(cursor.fetchone()).encode() + b" " * STEP_BYTES

    export, sent = DjangoAnswer(200, [], long=StreamingHttpResponse(rows())), io.BytesIO()
    assert export.step(sent)
    end(connection.connection.info.backend_pid)
    assert export.step(sent)
    assert export.step(sent)
    assert not export.step(sent)
    assert len(set(sent.getvalue().split())) == 2
