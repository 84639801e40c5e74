"""A history that was kept change by change becomes a history of sets, with the same revisions, authors and reverts."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.gdpconfig.models import Change, ChangeSet, Override, Revision
from broker_site.foundation.gdpconfig.store import revert

OLD = """
INSERT INTO gdpconfig_revision VALUES (1, 3);
INSERT INTO gdpconfig_change (revision, app, component, name, vo, before, after, who, why, at, reverts_id) VALUES
  (1, 'jedi', 'jobbroker', 'NQUEUED_SAT_CAP', '', NULL, '150', 'ann', 'slow', '2026-01-01Z', NULL),
  (2, 'jedi', 'jobbroker', 'NQUEUED_SAT_CAP', 'atlas', NULL, '', 'bob', 'odd', '2026-01-02Z', NULL),
  (3, 'jedi', 'jobbroker', 'NQUEUED_SAT_CAP', 'atlas', '', '7', 'cid', 'back', '2026-01-03Z', 2);
INSERT INTO gdpconfig_override (app, component, name, vo, value, change_id) VALUES
  ('jedi', 'jobbroker', 'NQUEUED_SAT_CAP', '', '150', 1),
  ('jedi', 'jobbroker', 'NQUEUED_SAT_CAP', 'atlas', '7', 3);
"""


@pytest.mark.django_db(transaction=True)
def test_history_of_before_is_kept_and_goes_on() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_serial_sequence('gdpconfig_change', 'id')")
        assert cursor.fetchone()[0] is not None
        cursor.execute("DROP SCHEMA IF EXISTS before_sets CASCADE; CREATE SCHEMA before_sets; SET search_path TO before_sets")
    try:
        executor = MigrationExecutor(connection)
        executor.migrate([("gdpconfig", "0001_initial")])
        with connection.cursor() as cursor:
            cursor.execute(OLD)
        MigrationExecutor(connection).migrate([("gdpconfig", "0004_proposals")])
        sets = ChangeSet.objects.order_by("revision").values_list("revision", "who", "why", "source", "reverts_id")
        assert list(sets) == [(1, "ann", "slow", "", None), (2, "bob", "odd", "", None), (3, "cid", "back", "", 2)]
        lines = Change.objects.order_by("id").values_list("change_set_id", "vo", "before", "after", "kind")
        assert list(lines) == [(1, "", None, "150", "config"), (2, "atlas", None, "", "config"), (3, "atlas", "", "7", "config")]
        assert list(Override.objects.order_by("vo").values_list("value", "change__change_set")) == [("150", 1), ("7", 3)]
        change = set_override("jobbroker", "NQUEUED_SAT_CAP", 200, who="dan", why="more")
        assert change is not None
        assert (change.change_set_id, change.before) == (4, "150")
        assert revert(change.change_set, who="dan", why="less") is not None
        assert Revision.objects.get().number == 5
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SET search_path TO DEFAULT; DROP SCHEMA before_sets CASCADE")
