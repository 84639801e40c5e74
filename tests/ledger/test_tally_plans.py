"""Counting jobs over time, and reading the counts, cost what is new or asked for, however long the history is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from django.db import connection
from django.test import TestCase

from broker_site.foundation.kernel import clock
from brokerage.ledger.tally import compare_levels, count_changes, forget_buckets
from brokerage.models import TallyMark
from brokerage.queries.series import series
from brokerage.rules.facts.rollups import MINUTE_S
from brokerage.rules.facts.series import Asked
from brokerage.states import JOB
from tests.ledger.full_tables import fill
from tests.ledger.plans import Plan, partial_indexes, plans

BUCKETS = (
    "UPDATE brokerage_jobchange SET xid = (10 + id % 5000)::text::xid8",
    """
    INSERT INTO brokerage_tallygroup (id, family, vo, queue, share)
    SELECT 1000000 + n, CASE WHEN n <= 3 THEN 'vo' ELSE 'place' END, 'vo' || n % 3,
        CASE WHEN n <= 3 THEN '' ELSE 'Q' || n % 200 END, 'S' || n
    FROM generate_series(1, 600) n
    """,
    """
    INSERT INTO brokerage_tallybucket (step_s, group_id, what, at, n)
    SELECT step, g, what, date_bin('1 h', now(), '2000-01-01') - make_interval(secs => step * i), 1
    FROM unnest(ARRAY[60, 300, 3600]) step, unnest(ARRAY['started', 'running']) what, generate_series(1000001, 1000600) g,
        generate_series(1, 40) i
    """,
    "INSERT INTO brokerage_tallylevel (group_id, what, n) SELECT n, 'running', 1 FROM generate_series(1000001, 1000600) n",
    "ANALYZE brokerage_tallygroup, brokerage_tallybucket, brokerage_tallylevel, brokerage_jobchange",
)


class Indexed(TestCase):
    rows: ClassVar[dict[str, float]]
    partial: ClassVar[frozenset[str]]

    @classmethod
    def setUpTestData(cls) -> None:
        fill()
        count_changes(1)
        with connection.cursor() as cursor:
            for statement in BUCKETS:
                cursor.execute(statement)
            cursor.execute("SELECT relname, reltuples FROM pg_class WHERE relkind = 'r'")
            cls.rows, cls.partial = dict(cursor.fetchall()), partial_indexes()

    def hold(self, act: Callable[[], Any], *wanted: str) -> None:
        """The statements read and sort few rows, and use these indexes."""
        with plans() as found:
            act()
        faults = [f"{fault}: {' '.join(plan.sql.split())[:200]}" for plan in found for fault in self._faults(plan)]
        self.assertEqual(faults, [])
        used = {index for plan in found for index in plan.indexes()}
        for name in wanted:
            self.assertIn(name, used)

    def _faults(self, plan: Plan) -> list[str]:
        return plan.faults(self.rows, self.partial)

    def test_changes_that_are_counted_are_found_by_their_transaction(self) -> None:
        TallyMark.objects.update(xid=100, change_id=0, first_id=0)
        self.hold(lambda: self.assertEqual(count_changes(200), 200), "job_change_by_transaction", "brokerage_job_pkey")

    def test_nothing_new_costs_a_look_at_the_end_of_the_index(self) -> None:
        TallyMark.objects.update(xid=5_010, change_id=0, first_id=0)
        self.hold(lambda: self.assertEqual(count_changes(20_000), 0), "job_change_by_transaction")

    def test_no_statement_walks_along_the_history(self) -> None:
        TallyMark.objects.update(xid=5_010, change_id=0, first_id=0)
        with plans() as found:
            count_changes(20_000)
        reads = [node for plan in found for node in plan.nodes() if node.get("Relation Name") == "brokerage_jobchange"]
        walks = [node["Node Type"] for node in reads if "Index Cond" not in node]
        self.assertEqual(walks, ["Index Only Scan"], "that of the largest id, of which it reads one")

    def test_levels_are_compared_with_jobs_that_have_not_ended(self) -> None:
        TallyMark.objects.update(xid=5_010, change_id=0, first_id=0)
        with plans() as found:
            compare_levels()
        scanned = {node["Relation Name"] for plan in found for node in plan.nodes() if node["Node Type"] == "Seq Scan"}
        self.assertNotIn("brokerage_tallybucket", scanned)
        facts = next(plan for plan in found if "alive AS" in plan.sql)
        read = [node for node in facts.nodes() if node.get("Relation Name") in ("brokerage_job", "brokerage_jobchange")]
        self.assertEqual({node["Node Type"] for node in read} - {"Index Scan", "Index Only Scan", "Bitmap Heap Scan"}, set())

    def test_a_day_of_all_jobs_is_read_by_the_few_groups_that_count_all(self) -> None:
        for what in (("started",), JOB.live):
            self.hold(partial(series, Asked(what), clock.now(), ["vo1"]), "tally_bucket_once")

    def test_a_day_at_one_queue_is_read_by_its_groups(self) -> None:
        asked = Asked(("started",), only={"queue": "Q7"}, by="share")
        self.hold(lambda: series(asked, clock.now(), None), "tally_bucket_once")

    def test_old_counts_are_found_by_their_age(self) -> None:
        self.hold(lambda: forget_buckets(MINUTE_S, 30 * 86400, 1000), "tally_bucket_age")
