"""What is asked of open jobs, of the last asks and of stations is served by indexes where there are many of all."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar
from uuid import UUID

from django.db import transaction
from django.test import TestCase

from brokerage.api.filtering import JobFilter
from brokerage.ledger.empty_task_queues import remove_empty_task_queues
from brokerage.ledger.expiry import Limit, end_overdue
from brokerage.ledger.job_openings import note_openings, open_due
from brokerage.ledger.last_asks import LastAsks
from brokerage.ledger.ready_jobs import tell_of_jobs
from brokerage.ledger.rebrokering import rebroker_open
from brokerage.ledger.task_queues import NO_PLACES, open_task_queues, requirement_set
from brokerage.models import ComputingQueue, Job
from brokerage.queries.job_standing import job_standing
from brokerage.queries.jobs import open_to
from brokerage.queries.last_asks import asks_at
from brokerage.queries.movable_jobs import waiting_open
from brokerage.queries.open_places import open_jobs_of_queues, open_places
from brokerage.queries.premerged import site_merges, waiting_to_merge
from brokerage.queries.site_limits import station_sites
from brokerage.queries.stranded_jobs import stranded_task_queues
from brokerage.queries.stranded_jobs import waiting_in as open_by_group
from brokerage.queries.task_queue_facts import task_queue_facts
from brokerage.queries.task_status import queue_loads
from brokerage.queries.waiting import WaitingWork
from brokerage.queries.why_empty import load_of
from brokerage.queries.withholdable_tasks import queues_at_data
from brokerage.rules.dispatch.queue_asks import EndedAsk
from brokerage.rules.dispatch.requirement import Resource
from brokerage.rules.placement.slots import Slot
from monitoring.queries.jobs import job_rows, visible_jobs
from tests.ledger.full_tables import fill_beside
from tests.ledger.plans import partial_indexes, plans
from tests.ledger.test_typical_queries import ALL
from workqueues.models import Task

FIRST_QUEUE, FIRST_JOB = 10_001, 100_001
OPEN_TASK = 4_242

ROWS = (
    "SELECT setval(pg_get_serial_sequence('brokerage_requirementset', 'id'), 100000)",
    "SELECT setval(pg_get_serial_sequence('brokerage_taskqueue', 'id'), 100000)",
    "INSERT INTO brokerage_requirementset (id, digest) SELECT n, 'digest' || n FROM generate_series(1, 1500) n",
    """
    INSERT INTO brokerage_requirementvalue (requirement_set_id, attribute, value)
    SELECT n, 'tags', 'tag' || i FROM generate_series(1, 1500) n, generate_series(1, 5) i
    """,
    """
    INSERT INTO brokerage_requirementplace (requirement_set_id, computing_queue_id, storage)
    SELECT n, 1 + (n + i * 37) % 200, '' FROM generate_series(1, 1500) n, generate_series(1, 5) i
    """,
    """
    INSERT INTO brokerage_taskqueue (id, computing_queue_id, vo, ram_mb, requirement_set_id)
    SELECT 10000 + n, NULL, 'demo', n, 1 + n % 1500 FROM generate_series(1, 2000) n
    """,
    "ALTER TABLE brokerage_job DISABLE TRIGGER USER",
    # Three in four wait; the others were open once, have a queue and ended.
    """
    INSERT INTO brokerage_job (id, task_id, status, ended_at, priority, ready_priority, task_queue_id, computing_queue_id)
    SELECT 100000 + n, CASE WHEN n % 100 = 0 THEN 4242 ELSE 40 * (1 + n % 450) END,
        CASE WHEN n % 4 > 0 THEN 'activated' ELSE 'finished' END, CASE WHEN n % 4 = 0 THEN now() END, 500,
        CASE WHEN n % 4 > 0 THEN -500 END, 10001 + n % 2000, CASE WHEN n % 4 = 0 THEN 1 + n % 200 END
    FROM generate_series(1, 32000) n
    """,
    "ALTER TABLE brokerage_job ENABLE TRIGGER USER",
    """
    INSERT INTO brokerage_jobspec (job_id, job_name, vo, user_name)
    SELECT 100000 + n, 'job', 'demo', 'user1' FROM generate_series(1, 32000) n
    """,
    """
    INSERT INTO brokerage_jobopening (job_id, task_queue_id, due)
    SELECT id, 10001 + id % 2000, now() + (id % 100 - 1) * interval '1 minute'
    FROM brokerage_job WHERE computing_queue_id IS NOT NULL ORDER BY id LIMIT 20000
    """,
    """
    INSERT INTO brokerage_queueask (queue_id, at, pilot_id, outcome, jobs, offer, told, vo, unknown, took_ms)
    SELECT 1 + n % 200, now() - n * interval '1 second', gen_random_uuid(), 'no_job', '{}', '{}', '{}', '', '{}', 1
    FROM generate_series(1, 10000) n
    """,
    """
    INSERT INTO brokerage_askhour (queue_id, outcome, hour, minutes)
    SELECT q, o, date_trunc('hour', now()) - h * interval '1 hour', array_fill(0, ARRAY[60])
    FROM generate_series(1, 200) q, unnest(ARRAY['job', 'no_job', 'no_fit', 'limits']) o, generate_series(0, 25) h
    """,
    "ANALYZE",
)


def slots() -> list[Slot]:
    return [Slot(1, 1000 + n, 0, 3600) for n in range(3)]


def write_asks() -> None:
    """Three asks at each of three queues."""
    asks = LastAsks(by_server=True)
    for queue in (7, 8, 9):
        for _ in range(3):
            asks.note(queue, EndedAsk(time.time(), UUID(int=7), Resource(f"Q{queue}"), (7,), vo="demo"))
    asks.write()


def listed(**asked: str) -> Any:
    """A page of the list of jobs with this filter."""
    return job_rows(JobFilter(asked, queryset=visible_jobs(ALL)).qs.order_by("-id")[:100])


ASKED: tuple[tuple[str, Callable[[], Any], tuple[str, ...]], ...] = (
    ("openings that are due", lambda: open_due(100, "test"), ("brokerage_jobopening_due", "brokerage_job_pkey")),
    ("openings of new jobs", lambda: note_openings({10**7: FIRST_QUEUE}, 60), ()),
    (
        "task queues of new open jobs",
        lambda: open_task_queues(Task(id=7, vo="demo"), slots(), {7: ("Q7", ""), 8: ("Q8", "")}),
        (),
    ),
    ("a set of values", lambda: requirement_set({"tags": ["tag1", "tag2"]}, NO_PLACES), ()),
    ("queues to tell of open jobs", lambda: tell_of_jobs({(None, FIRST_QUEUE): 1}), ("requirement_place_of_set",)),
    ("facts of task queues", lambda: task_queue_facts([FIRST_QUEUE, 7]), ("requirement_place_of_set", "requirement_value_once")),
    (
        "what waits at a queue",
        lambda: WaitingWork().of(7, fresh=True),
        ("requirement_place_once", "task_queue_of_set", "job_ready"),
    ),
    ("open task queues that no queue runs", lambda: stranded_task_queues({7, 8}), ("job_ready", "requirement_place_of_set")),
    ("open jobs that wait in task queues, by task", lambda: waiting_open([FIRST_QUEUE, FIRST_QUEUE + 1]), ("job_",)),
    ("open jobs that wait in task queues, by group", lambda: open_by_group([FIRST_QUEUE]), ("job_ready",)),
    ("open jobs that are closed", lambda: rebroker_open([OPEN_TASK], "test", "test", task_queues=[FIRST_QUEUE]), ("job_o",)),
    ("where open jobs may go", open_places, ("requirement_place_of_set",)),
    ("open jobs of a queue", lambda: open_jobs_of_queues(7), ("requirement_place_once", "job_ready")),
    ("open jobs of all queues", open_jobs_of_queues, ("job_ready",)),
    (
        "open jobs that waited too long",
        lambda: end_overdue([Limit(None, "activated", 1e6, 1e6, task_queues=(FIRST_QUEUE,))], 800, {}, "test", 100),
        ("job_",),
    ),
    ("queues of an open job", lambda: open_to(FIRST_JOB), ("requirement_place_of_set",)),
    (
        "where an open job stands",
        lambda: job_standing(Job.objects.get(id=FIRST_JOB), None, "default"),
        ("job_ready", "queue_ask_of_queue"),
    ),
    ("where the open jobs of a task are", lambda: queue_loads(OPEN_TASK), ("job_of_task", "requirement_place_of_set")),
    ("what an open job keeps from being merged", lambda: (waiting_to_merge([7]), site_merges(Task(id=7, vo="demo"))), ()),
    ("load of a queue", lambda: load_of(ComputingQueue.objects.get(name="Q7")), ("job_ready", "job_open")),
    ("queues at data with open jobs", queues_at_data, ("job_open",)),
    ("empty task queues", lambda: remove_empty_task_queues(100, 300.0), ("job_ready",)),
    ("jobs open to a queue", lambda: listed(open_to="Q7"), ("job_",)),
    ("the last asks of a queue", lambda: asks_at(ComputingQueue.objects.get(name="Q7")), ("queue_ask_of_queue", "ask_hour_once")),
    ("asks that are written", write_asks, ("queue_ask_of_queue",)),
    ("sites that offer stations", lambda: station_sites(["st1"]), ()),
)


class OpenJobs(TestCase):
    rows: ClassVar[dict[str, float]]

    @classmethod
    def setUpTestData(cls) -> None:
        cls.rows = fill_beside(ROWS)

    def test_what_is_asked_of_them_is_indexed(self) -> None:
        partial = partial_indexes()
        for what, act, wanted in ASKED:
            with self.subTest(what), transaction.atomic(), plans() as found:
                act()
                faults = [f"{fault}: {' '.join(p.sql.split())[:300]}" for p in found for fault in p.faults(self.rows, partial)]
                self.assertEqual(faults, [], what)
                used = {index for plan in found for index in plan.indexes()}
                for name in wanted:
                    self.assertTrue([index for index in used if index.startswith(name)], f"{what}: {name} not in {used}")
