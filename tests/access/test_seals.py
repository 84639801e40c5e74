"""The audit is sealed: a row that was changed, removed or inserted behind its back is found, by name."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from broker_site.foundation.access import seals
from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.models import Audit, AuditSeal
from broker_site.foundation.access.principal import SYSTEM
from broker_site.foundation.access.seals import check, seal
from broker_site.foundation.agency.run import BODIES, new_run

ROOT = Path(__file__).resolve().parents[2]
TRIGGERS = {
    "access_audit": ("access_audit_append_only", "access_audit_numbered"),
    "access_auditseal": ("access_auditseal_append_only",),
}


def add(n: int, name: str = "thing") -> list[int]:
    """So many rows; their ids."""
    for i in range(n):
        audit("test.act", SYSTEM, f"{name} {i}", before={"b": [1.5, None], "a": "ä\u2028"}, after=i)
    return list(Audit.objects.order_by("-id").values_list("id", flat=True)[:n][::-1])


@contextmanager
def as_owner() -> Iterator[None]:
    """What only the owner of the tables can do: nothing refuses or numbers rows."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '60s'")  # an autovacuum may be at the table
        for verb in ("DISABLE", "ENABLE"):
            for table in TRIGGERS:
                cursor.execute(f"ALTER TABLE {table} {verb} TRIGGER USER")
            if verb == "DISABLE":
                yield


def run(statement: str, *values: Any) -> None:
    with as_owner(), connection.cursor() as cursor:
        cursor.execute(statement, values)


def printed(*arguments: str) -> tuple[int, str]:
    out, code = io.StringIO(), 0
    try:
        call_command("check_audit", *arguments, stdout=out)
    except SystemExit as end:
        code = int(str(end.code))
    return code, out.getvalue()


@pytest.mark.django_db
def test_what_nobody_touched_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    add(7)
    assert seal(batch=3) == 7
    add(2)
    assert seal(batch=3) == 2
    add(1)
    found = check()
    assert (found.faults, found.seals, found.rows, found.unsealed) == ([], 4, 9, 1)
    code, text = printed()
    assert code == 0
    assert "9 rows in 4 seals, 0 faults; 1 rows not sealed yet, since " in text
    assert f"last seal 4:{AuditSeal.objects.get(number=4).hash}" in text


@pytest.mark.django_db
@pytest.mark.parametrize("column", ["at", "who", "kind", "prefix", "vo", "act", "object", "outcome", "status", "reason", "before",
                                    "after", "trace_id"])  # fmt: skip
def test_a_change_of_any_column_is_found(column: str) -> None:
    ids = add(5)
    seal(batch=2)
    values = {"at": "at + interval '1 microsecond'", "status": "204", "before": "'{}'::jsonb", "after": "'7'::jsonb"}
    run(f"UPDATE access_audit SET {column} = {values.get(column, chr(39) + 'x' + chr(39))} WHERE id = {ids[2]}")
    assert check().faults == [f"row {ids[2]} was changed"]
    assert printed()[0] == 1


@pytest.mark.django_db
def test_removed_and_inserted_rows_are_found_by_name() -> None:
    ids = add(6)
    seal(batch=4)
    run("DELETE FROM access_audit WHERE id = ANY(%s)", [ids[0], ids[5]])
    columns = "who, kind, prefix, vo, act, object, outcome, reason, trace_id"
    run(f"INSERT INTO access_audit (id, at, {columns}) SELECT {ids[0] - 1}, now(), {columns} FROM access_audit LIMIT 1")
    assert check().faults == [
        f"row {ids[0] - 1} was inserted after its batch was sealed",
        f"row {ids[0]} was removed",
        f"row {ids[5]} was removed",
    ]
    code, text = printed("--json")
    assert code == 1
    assert len(json.loads(text)["faults"]) == 3


@pytest.mark.django_db
def test_who_makes_seals_anew_is_found_by_a_seal_that_was_noted() -> None:
    ids = add(6)
    seal(batch=2)
    head = check().head
    run("UPDATE access_audit SET who = 'nobody' WHERE id = %s", ids[3])
    run("DELETE FROM access_auditseal WHERE number >= 2")
    seal(batch=2)
    assert check().faults == []
    number, _, digest = head.partition(":")
    assert check((int(number), digest)).faults == [f"seal {number} is not the one that was noted: the audit was sealed anew"]
    run("DELETE FROM access_auditseal WHERE number >= 3")
    assert check((int(number), digest)).faults == ["seal 3 was noted, and the last one is 2: seals were removed"]
    with pytest.raises(CommandError, match="number of a seal and its hash"):
        printed("--expect", "7")


@pytest.mark.django_db
def test_changed_and_removed_seals_are_found() -> None:
    add(6)
    seal(batch=2)
    run("UPDATE access_auditseal SET digests = decode(repeat('00', 48), 'hex') WHERE number = 3")
    assert "seal 3 was changed, or one before it" in check().faults
    run("DELETE FROM access_auditseal WHERE number = 2")
    assert "seals 2 to 2 were removed: nothing vouches for their rows" in check().faults


@pytest.mark.django_db
def test_a_writer_chooses_neither_number_nor_time() -> None:
    (last,) = add(1)
    row = Audit.objects.create(id=1, at="2001-01-01T00:00:00Z", who="x", kind="x", act="x", object="x", outcome="done")
    row = Audit.objects.get(object="x")
    assert row.id > last
    assert row.at.year > 2020


@pytest.mark.django_db(transaction=True)
def test_a_row_that_is_not_committed_yet_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "PATIENCE_MS", 50)
    written, commit = threading.Event(), threading.Event()

    def slow() -> None:
        with transaction.atomic():
            add(1, "slow")
            written.set()
            commit.wait(10)
        connection.close()

    writer = threading.Thread(target=slow)
    writer.start()
    assert written.wait(10)
    add(1, "quick")
    assert seal() == 0, "the slow row has the smaller number and is not there yet"
    commit.set()
    writer.join()
    assert seal() == 2
    assert check().faults == []


@pytest.mark.django_db(transaction=True)
def test_two_runs_at_once_make_one_chain() -> None:
    add(40)

    def sealing() -> None:
        seal(batch=3)
        connection.close()

    runs = [threading.Thread(target=sealing) for _ in range(4)]
    for each in runs:
        each.start()
    for each in runs:
        each.join()
    seal()
    found = check()
    assert (found.faults, found.rows, found.unsealed) == ([], 40, 0)


@pytest.mark.django_db
def test_the_agent_seals_in_batches_not_row_by_row() -> None:
    add(3)
    assert BODIES["seal"](new_run("seal")) == 3
    add(1)
    assert BODIES["seal"](new_run("seal")) == 0
    assert AuditSeal.objects.count() == 1


WORKER_LOG = """
import logging, django
django.setup()
from broker_site.celery import app
app.log.setup(loglevel="WARNING")
logging.getLogger("broker_site.foundation.access.seals").info("audit sealed up to row 5")
"""


def test_the_log_of_a_worker_has_each_seal() -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "broker_site.settings", "GRIDBROKER_PROFILE": "local"}
    ran = subprocess.run([sys.executable, "-c", WORKER_LOG], env=environment, cwd=ROOT, capture_output=True, text=True)
    assert "audit sealed up to row 5" in ran.stderr
