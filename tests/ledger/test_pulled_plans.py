"""What a child broker asks all the time of what it pulled is served by indexes, whatever it has and had."""

from __future__ import annotations

from typing import ClassVar

from django.test import TestCase

from brokerage.queries.standing_elements import standing_elements
from tests.ledger.full_tables import fill_beside
from tests.ledger.plans import partial_indexes, plans
from workqueues.rules.elements.giving_back import IdleLimits

LIVE, ENDED = 1_000, 19_000
ROWS = (
    "ALTER TABLE workqueues_task DISABLE TRIGGER USER",
    f"""
    UPDATE workqueues_task SET status = CASE WHEN id % 10 = 0 THEN 'exhausted' ELSE 'running' END, ended_at = NULL,
        command_time = NULL, start_time = now() - interval '1 day' WHERE id <= {LIVE}
    """,
    "ALTER TABLE workqueues_task ENABLE TRIGGER USER",
    f"""
    INSERT INTO workqueues_pulledelement (element_id, try_nr, incarnation, parent_task_id, status, told, priority, jobs, site, vo,
        work, task_id, pulled_at, lease_until, ended_at)
    SELECT n, n, '00000000-0000-4000-8000-0000000000aa', 7, CASE WHEN live THEN 'Running' ELSE 'Done' END, 'Running', 500, 1,
        'S1', 'demo', '{{"sites": ["S1"]}}', n, now() - interval '1 day', now() + interval '1 hour',
        CASE WHEN NOT live THEN now() END
    FROM generate_series(1, {LIVE + ENDED}) n, LATERAL (SELECT n <= {LIVE} AS live) AS l
    """,
    "ANALYZE",
)


class ManyPulled(TestCase):
    rows: ClassVar[dict[str, float]]

    @classmethod
    def setUpTestData(cls) -> None:
        cls.rows = fill_beside(ROWS)

    def test_what_stands_still_is_found_by_indexes(self) -> None:
        with plans() as found:
            standing = standing_elements("agent:pull", IdleLimits(3 * 3600.0, 600.0), 1000)
        self.assertEqual(len(standing), LIVE // 10)
        partial = partial_indexes()
        self.assertEqual([fault for plan in found for fault in plan.faults(self.rows, partial)], [])
        used = {name for plan in found for name in plan.indexes()}
        self.assertLessEqual({"pulled_element_to_tell", "job_of_task"}, used)
