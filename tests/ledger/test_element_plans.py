"""What child brokers and the agent offer ask all the time of elements is served by indexes, whatever waits and has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.db import connection
from django.test import TestCase

from benchmarks.filling_elements import ELEMENTS, GUARDED, Child, fill_world
from broker_site.foundation.sql.prepared import Prepared
from tests.ledger.plans import Plan, partial_indexes, plan_of_prepared, plans
from workqueues.ledger.elements import hand_over, next_waiting, pulling_children
from workqueues.ledger.elements.asides import follow_tasks
from workqueues.ledger.elements.groups import remove_empty_groups
from workqueues.ledger.elements.inboxes import refresh_inboxes
from workqueues.ledger.elements.locations import due_elements
from workqueues.ledger.elements.returning import end_overdue_cancellations, lapse, take_back_from_drained
from workqueues.models import ChildBroker, Element, Task
from workqueues.queries import speakers

WAITING, ENDED = 15_000, 15_000
END = f"""
UPDATE workqueues_element SET status = 'Done', child_id = (SELECT min(id) FROM workqueues_childbroker)
WHERE id > (SELECT min(id) + {WAITING} FROM workqueues_element)
"""
INBOXES = "INSERT INTO workqueues_elementinbox (task_id, status, counts) SELECT id, 'Available', '{}' FROM workqueues_task"


class ManyElements(TestCase):
    rows: ClassVar[dict[str, float]]
    children: ClassVar[list[Child]]

    @classmethod
    def setUpTestData(cls) -> None:
        with connection.cursor() as cursor:
            for table in GUARDED:
                cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            cls.children = fill_world()
            cursor.execute(ELEMENTS.format(first=1, last=WAITING + ENDED))
            cursor.execute(END)
            cursor.execute(INBOXES)
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            for table in GUARDED:
                cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
            cursor.execute("ANALYZE")
            cursor.execute("SELECT relname, reltuples FROM pg_class WHERE relkind = 'r'")
            cls.rows = dict(cursor.fetchall())

    def hold(self, what: str, found: list[Plan], index: str) -> None:
        self.assertTrue(found, what)
        partial = partial_indexes()
        self.assertEqual([f"{fault}: {plan.sql[:300]}" for plan in found for fault in plan.faults(self.rows, partial)], [], what)
        used = {name for plan in found for name in plan.indexes()}
        self.assertTrue([name for name in used if name.startswith(index)], f"{what}: {index} is not among {used}")

    def test_a_pull_reads_by_index_and_ends_with_what_is_wanted(self) -> None:
        indexes = {
            "next_elements": "element_in_order",
            "elements_beyond_front": "element_waiting",
            "many_elements": "element_in_order",
            "pulling_child": "element_negotiating",
            "pulling_children": "element_negotiating",
            "hand_over_elements": "workqueues_childbroker",
            "speaking_child": "workqueues_childbroker",
        }
        constants = [value for module in (next_waiting, pulling_children, hand_over, speakers) for value in vars(module).values()]
        statements = {value.name: value for value in constants if isinstance(value, Prepared)}
        self.assertEqual(statements.keys(), indexes.keys())
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        for name, statement in statements.items():
            with self.subTest(name):
                self.hold(name, [plan_of_prepared(statement)], indexes[name])

    def test_what_the_agent_does_each_time_is_indexed(self) -> None:
        doings: tuple[tuple[str, Callable[[], Any], str], ...] = (
            ("elements of tasks that give no work now", lambda: follow_tasks(1000), "element_waiting_of_task"),
            ("leases that are over", lambda: lapse(1000, "test"), "element_lease"),
            ("cancellations that are over", lambda: end_overdue_cancellations(60.0, 1000, "test"), "element_"),
            ("elements to locate", lambda: due_elements(1000, -1.0), "element_located"),
            ("inboxes", refresh_inboxes, "inbox_counted"),
            ("groups without elements", lambda: remove_empty_groups(1000, -1.0), "element_"),
        )
        for what, act, index in doings:
            with self.subTest(what), plans() as found:
                act()
                self.hold(what, found, index)
        ChildBroker.objects.update(drain_since="2026-01-01T00:00:00Z", drain_until="2026-01-01T00:00:00Z")
        with plans() as found:
            take_back_from_drained("test")
        self.hold("children that were drained", found, "element_of_child")

    def test_a_pull_passes_by_what_stands_aside_without_a_look(self) -> None:
        """Ten thousand elements of paused tasks, the first of all by priority, cost a pull nothing."""
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE workqueues_task DISABLE TRIGGER USER")
            cursor.execute("UPDATE workqueues_task SET status = 'paused' WHERE current_priority > 506")
            cursor.execute("ALTER TABLE workqueues_task ENABLE TRIGGER USER")
        paused = set(Task.objects.filter(status="paused").values_list("id", flat=True))
        waiting = Element.objects.filter(status="Available", task_id__in=paused)
        n = waiting.count()
        self.assertGreater(n, next_waiting.FRONT)
        while follow_tasks(1000):
            pass
        self.assertEqual(waiting.filter(is_aside=True).count(), n)
        sites = self.children[0].sites
        with connection.cursor() as cursor:
            next_waiting.next_waiting(sites, "", "", [], 1)
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {next_waiting.NEXT.execute}", [sorted(sites), "", "", [], 1])
            plan = Plan("", cursor.fetchone()[0][0]["Plan"])
        seen = sum(node["Actual Rows"] * node["Actual Loops"] for node in plan.nodes() if node.get("Alias", "").startswith("e_"))
        self.assertLess(seen, next_waiting.FRONT)
        self.assertFalse(paused & {one.task_id for one in next_waiting.next_waiting(sites, "", "", [], 100).mine})
