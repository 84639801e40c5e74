"""What is claimed ahead of a run's tasks is found by index, where ten thousand tasks rest as their queues are full."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from django.db import connection, transaction
from django.test import TestCase

from tests.ledger.full_tables import fill_beside
from tests.ledger.plans import partial_indexes, plans
from workqueues.ledger.claims_ahead import claim_ahead
from workqueues.models import Task
from workqueues.states import TASK

FULL = "the queues are full"
CLAIMED = 200_001
ROWS = (
    "ALTER TABLE workqueues_task DISABLE TRIGGER USER",
    "ALTER TABLE workqueues_dataset DISABLE TRIGGER USER",
    "ALTER TABLE workqueues_file DISABLE TRIGGER USER",
    """
    INSERT INTO workqueues_task (id, task_name, user_name, vo, gshare, prod_source_label, status, next_look_at, error_dialog,
        current_priority)
    SELECT n, 'full.' || n, 'user' || n % 20, 'demo', 'Share' || n % 100, 'managed', 'ready',
        now() + (1 + n % 28) * interval '1 s', 'the queues are full', 100 + n % 800
    FROM generate_series(100001, 110000) n
    """,
    """
    INSERT INTO workqueues_dataset (id, task_id, dataset_name, container_name, type, stream_name, attributes, vo, cloud, site,
        storage_token, destination, status, state, locked_by, n_files, n_files_to_be_used)
    SELECT id, id, 'full.in.' || id, '', 'input', '', '', 'demo', '', '', '', '', 'ready', 'closed', '', 5, 5
    FROM workqueues_task WHERE id > 100000
    """,
    """
    INSERT INTO workqueues_file (task_id, dataset_id, lfn, type, status)
    SELECT id, id, 'full.in.' || id || '.' || n, 'input', 'ready' FROM workqueues_task, generate_series(1, 5) n WHERE id > 100000
    """,
    """
    INSERT INTO workqueues_task (id, task_name, user_name, vo, gshare, prod_source_label, status, current_priority, locked_by,
        locked_time)
    SELECT n, 'claimed.' || n, 'user' || n % 20, 'demo', 'Share' || n % 100, 'managed', 'ready', 100, 'run', now()
    FROM generate_series(200001, 200050) n
    """,
    "ANALYZE",
)


class ClaimedAhead(TestCase):
    rows: ClassVar[dict[str, float]]

    @classmethod
    def setUpTestData(cls) -> None:
        cls.rows = fill_beside(ROWS)

    def claimed(self, priority: int) -> list[Task]:
        """What a run has claimed, all of this priority: 50 tasks of 50 shares."""
        tasks = Task.objects.filter(id__gte=CLAIMED)
        tasks.update(current_priority=priority)
        return list(tasks)

    def ahead(self, claimed: list[Task]) -> list[Task]:
        tasks = claim_ahead("run", 60.0, claimed, TASK.generating, FULL, 30.0, 50)
        return [task for task in tasks if task.id < CLAIMED]

    def test_whoever_is_ahead_is_found_by_index(self) -> None:
        partial = partial_indexes()
        for priority, ahead in ((950, 0), (880, 0), (800, 50), (100, 50)):
            with self.subTest(priority):
                claimed = self.claimed(priority)
                with plans() as found:
                    self.assertEqual(len(self.ahead(claimed)), ahead)
                self.assertEqual([f for plan in found for f in plan.faults(self.rows, partial)], [])
                scanned = {n["Relation Name"] for plan in found for n in plan.nodes() if n["Node Type"] == "Seq Scan"}
                self.assertLessEqual(scanned, {"workqueues_element"}, "which is empty")
                used = found[0].indexes()
                for name in ("task_", "workqueues_task_pkey", "dataset_of_task", "file_"):
                    self.assertTrue([index for index in used if index.startswith(name)], f"{name} is not among {used}")

    def test_it_reads_as_many_blocks_as_tasks_may_be_ahead(self) -> None:
        """Those of lower priority, however many, cost nothing; files are looked at of those in the unit of a claimed one."""
        for priority, most in ((950, 100), (880, 2_500), (100, 150_000)):
            with self.subTest(priority), blocks() as read:
                self.ahead(self.claimed(priority))
                self.assertLess(read[0], most)


@contextmanager
def blocks() -> Iterator[list[int]]:
    """How many blocks the statements in question touch."""
    read: list[int] = []

    def explain(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.lstrip().startswith("WITH chosen"):
            with transaction.atomic(), connection.create_cursor() as cursor:
                cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}", params)
                plan = cursor.fetchone()[0][0]["Plan"]
                transaction.set_rollback(True)
            read.append(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        yield read
