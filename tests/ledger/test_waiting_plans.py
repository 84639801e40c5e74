"""What is asked of tasks that wait is served by indexes where ten thousand of them do, and an event finds what it touches."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from django.test import TestCase
from django.utils import timezone

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.principal import SYSTEM
from brokerage.ledger.look_now import look_at_queue, look_at_share
from brokerage.ledger.waits import drop_waits, end_waits, note_judged
from brokerage.models import ComputingQueue, WaitGroup
from brokerage.queries.wait_groups import groups_to_judge, groups_touched, tasks_in
from brokerage.queries.world_version import world_version
from brokerage.rules.placement.wait_cause import LOOK_NOW
from tests.ledger.full_tables import fill_beside
from tests.ledger.plans import partial_indexes, plans
from workqueues.models import GlobalShare

WAITING, GROUPS = 10_000, 5_000

ROWS = (
    "INSERT INTO brokerage_gridrevision (id, number) VALUES (1, 10) ON CONFLICT (id) DO UPDATE SET number = 10",
    """
    INSERT INTO brokerage_waitgroup (id, key, policy, ask, own, criteria, queues, judged_at, grid_revision, config_revision)
    SELECT n, 'key' || n, 'generic',
        jsonb_build_object('vo', 'demo', 'share', 'Share' || mod(n, 100)), '', ARRAY['pilot'],
        ARRAY['Q' || 1 + mod(n, 200), 'Q' || 1 + mod(n * 7, 200)],
        now() - interval '1 minute', 10, %s
    FROM generate_series(1, 5000) n
    """,
    "ALTER TABLE workqueues_task DISABLE TRIGGER USER",
    """
    INSERT INTO workqueues_task (id, task_name, user_name, vo, gshare, status, next_look_at, work_queue_id)
    SELECT n, 'waits.' || n, 'user' || n % 20, 'demo', 'Share' || n % 100, 'pending', now() + n % 3600 * interval '1 s',
        (SELECT min(id) FROM workqueues_workqueue)
    FROM generate_series(100001, 110000) n
    """,
    "ALTER TABLE workqueues_task ENABLE TRIGGER USER",
    """
    INSERT INTO brokerage_taskwait (task_id, group_id, until)
    SELECT id, 1 + id % 5000, next_look_at FROM workqueues_task WHERE id > 100000
    """,
    "ANALYZE",
)


class Waiting(TestCase):
    rows: ClassVar[dict[str, float]]

    @classmethod
    def setUpTestData(cls) -> None:
        cls.rows = fill_beside(ROWS, gdpconfig.revision())

    def test_what_is_asked_of_ten_thousand_waiting_tasks_is_indexed(self) -> None:
        world = world_version(timezone.now())
        groups = list(WaitGroup.objects.order_by("id")[:50])
        partial = partial_indexes()
        indexed = ("workqueues_task", "brokerage_waitgroup", "brokerage_taskwait")
        for what, act, wanted, tables in (
            ("groups to judge while nothing happens", lambda: groups_to_judge(world, (), 5, 50), "wait_group_by_grid", indexed),
            (
                "groups of a queue with an idle slot",
                lambda: groups_to_judge(world, {"Q7"}, 5, 50),
                "wait_group_by_queue",
                indexed,
            ),
            (
                "groups of a queue that moved",
                lambda: groups_touched(world, {"Q7"}, 5, 50, groups),
                "wait_group_by_queue",
                indexed,
            ),
            ("the tasks of a group", lambda: tasks_in(7, 200), "brokerage_taskwait_group_id", indexed),
            ("waits that are over", lambda: drop_waits(1000), "brokerage_taskwait_until", indexed[:1]),
            ("end waits", lambda: end_waits(range(100_001, 100_200)), "workqueues_task_pkey", indexed),
            ("groups were judged", lambda: note_judged(groups, [7], world), "brokerage_waitgroup_pkey", indexed),
            (
                "look at a queue",
                lambda: look_at_queue(SYSTEM, ComputingQueue.objects.get(name="Q8")),
                "wait_group_by_queue",
                indexed,
            ),
            (
                "look at a share",
                lambda: look_at_share(SYSTEM, GlobalShare(vo="demo", name="Share7")),
                "brokerage_taskwait_group_id",
                indexed[:1],
            ),
        ):
            with self.subTest(what), plans() as found:
                act()
                self.assertTrue(found)
                faults = [f"{fault}: {' '.join(p.sql.split())[:400]}" for p in found for fault in p.faults(self.rows, partial)]
                self.assertEqual(faults, [])
                walked = [
                    node["Relation Name"]
                    for plan in found
                    for node in plan.nodes()
                    if node["Node Type"] == "Seq Scan" and node["Relation Name"] in tables
                ]
                self.assertEqual(walked, [])
                used = {index for plan in found for index in plan.indexes()}
                self.assertTrue([index for index in used if index.startswith(wanted)], f"{wanted} is not among {used}")

    def test_an_event_finds_the_groups_it_touches_and_no_other(self) -> None:
        world = world_version(timezone.now())
        self.assertEqual(groups_to_judge(world, (), 5, 50), [])
        of_queue = groups_to_judge(world, {"Q7"}, 5, GROUPS)
        self.assertEqual({True}, {"Q7" in group.queues for group in of_queue})
        self.assertEqual(len(of_queue), WaitGroup.objects.filter(queues__contains=["Q7"]).count())
        note_judged(of_queue, [of_queue[0].id], world)
        self.assertEqual(groups_to_judge(world, {"Q7"}, 5, GROUPS), [], "they rest")
        self.assertEqual(groups_touched(world, {"Q7"}, 5, GROUPS, ()), ([], True))
        later = world_version(world.at + timedelta(seconds=6))
        self.assertEqual([group.id for group in groups_to_judge(later, (), 5, GROUPS)], [of_queue[0].id], "more of it is left")
        look_at_queue(SYSTEM, ComputingQueue.objects.get(name="Q7"))
        told = groups_to_judge(world, (), 5, GROUPS)
        self.assertEqual({group.id for group in told}, {group.id for group in of_queue})
        self.assertEqual({group.grid_revision for group in told}, {LOOK_NOW})
