"""Where a task stands: its parent, suspect files, live jobs with the pilots at their queues, and the agent whose turn it is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import connections

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.duties import AgentDuty, Health, agent_of, health
from broker_site.foundation.kernel import clock
from brokerage.queries.job_errors import job_errors
from brokerage.queries.premerged import site_merges
from brokerage.queries.scouts import standings_of
from brokerage.rules.dispatch.stranding import HANDS_OUT
from brokerage.rules.explain.task_status_text import ParentTask, PausedFiles, QueueLoad, SuspectFiles, TaskStatus, ThrottleCause
from brokerage.states import JOB
from workqueues.models import Task
from workqueues.queries.task_elements import elements_of_task
from workqueues.queries.units import throttle_reason
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.throttle.user_caps import CAUSE
from workqueues.states import INPUT_FILE, MASTER_TYPES, TASK

PILOT_SEEN_MIN = 10
"""Minutes after which a pilot that has not asked counts as gone."""
MOST_QUEUES = 20
MOST_PAUSED = 10_000
"""Files that wait for their next try are counted no further."""


def task_status(task: Task, using: str = "default") -> TaskStatus:
    """What is known of where the task stands. A task that has ended waits for nothing: only the errors of its jobs are read, and
    its elements.
    """
    elements = elements_of_task(task, using)
    if task.status in TASK.final:
        return TaskStatus(task.status, task.error_dialog, errors=job_errors(task.id, using), elements=elements)
    duty = None if task.quarantined_at else agent_of(task.status)
    rules = parse(task.split_rule)
    around = surroundings(task.id, task.vo, task.parent_tid or 0, duty.name if duty else "", using)
    return TaskStatus(
        status=task.status,
        reason=_reason(task, using),
        old_status=task.old_status,
        next_look_at=None if task.quarantined_at else task.next_look_at,
        throttled_until=task.throttled_time,
        throttles=around.throttles,
        command_by=task.command_by,
        throttle="" if task.quarantined_at else throttle_reason(task, using),
        parent=around.parent,
        suspect=around.suspect,
        failed=around.failed,
        partnerless=around.partnerless,
        loads=queue_loads(task.id, using),
        agent=(duty, _health(duty, *around.agent)) if duty else None,
        errors=job_errors(task.id, using),
        merges=site_merges(task, using) if rules.merge_output else (),
        open_inputs=around.open_inputs,
        held_up=rules.held_up,
        elements=elements,
        now=clock.now(),
    )


def _reason(task: Task, using: str) -> str:
    """What the last agent left with it; while it scouts with how far its scouts are."""
    if task.status != "scouting" or (standing := standings_of([task.id], using).get(task.id)) is None:
        return task.error_dialog
    return "; ".join(filter(None, [task.error_dialog.rstrip("."), standing.progress]))


class Surroundings(NamedTuple):
    """What of other tables a task hangs on: its parent, which is of the same VO; ready files that are not given to jobs; files of
    masters that wait since a try failed, or since a file beside them is held back; last success and error of the agent; why
    it is throttled; inputs that are open, and read again.
    """

    parent: ParentTask | None
    suspect: SuspectFiles
    failed: PausedFiles
    partnerless: PausedFiles
    agent: tuple[datetime | None, datetime | None]
    throttles: Sequence[ThrottleCause]
    open_inputs: Sequence[str] = ()


def surroundings(task_id: int, vo: str, parent_id: int, agent: str, using: str = "default") -> Surroundings:
    """In one statement, since pages show it."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            f"""
            SELECT p.id, p.task_name, p.status, f.n, f.reason, w.n, w.due, w.beside, w.beside_due, a.last_success,
                a.last_error_at, ARRAY(SELECT cause FROM workqueues_taskthrottle WHERE task_id = %(task)s ORDER BY cause),
                ARRAY(SELECT why FROM workqueues_taskthrottle WHERE task_id = %(task)s ORDER BY cause),
                ARRAY(SELECT until FROM workqueues_taskthrottle WHERE task_id = %(task)s ORDER BY cause),
                ARRAY(SELECT dataset_name FROM workqueues_dataset WHERE task_id = %(task)s AND type = 'input'
                    AND state_check_expiration IS NOT NULL ORDER BY dataset_name)
            FROM (SELECT count(*) AS n, min(held) AS reason FROM workqueues_file WHERE task_id = %(task)s AND held <> '') AS f
            CROSS JOIN (
                SELECT count(*) FILTER (WHERE tried) AS n, min(due) FILTER (WHERE tried) AS due,
                    count(*) FILTER (WHERE NOT tried) AS beside, min(due) FILTER (WHERE NOT tried) AS beside_due
                FROM (
                    SELECT f.retry_due AS due, f.attempt_nr > 0 AND f.id <> ALL (ARRAY(
                            SELECT beside_file FROM workqueues_file
                            WHERE task_id = %(task)s AND held <> '' AND beside_file IS NOT NULL)) AS tried
                    FROM workqueues_dataset d JOIN workqueues_file f
                        ON f.dataset_id = d.id AND f.status IN ({INPUT_FILE.unused.sql}) AND f.held = '' AND f.retry_due > now()
                    WHERE d.task_id = %(task)s AND d.master_id IS NULL AND d.type IN ({MASTER_TYPES.sql})
                    ORDER BY f.retry_due LIMIT %(most)s) AS paused) AS w
            LEFT JOIN workqueues_task p ON p.id = %(parent)s AND p.id <> %(task)s AND p.vo = %(vo)s
            LEFT JOIN agency_agent a ON a.name = %(agent)s
            """,
            {"task": task_id, "vo": vo, "parent": parent_id, "agent": agent, "most": MOST_PAUSED + 1},
        )
        known_parent, name, status, n, reason, n_failed, due, n_beside, beside_due, *more = cursor.fetchone()
    return Surroundings(
        ParentTask(known_parent, name, status) if known_parent else None,
        SuspectFiles(n, reason or ""),
        PausedFiles(n_failed, due, n_failed + n_beside > MOST_PAUSED),
        PausedFiles(n_beside, beside_due, n_failed + n_beside > MOST_PAUSED),
        (more[0], more[1]),
        [ThrottleCause(*cause) for cause in zip(*more[2:5], strict=True)],
        more[5],
    )


def _health(duty: AgentDuty, last_success: datetime | None, last_error_at: datetime | None) -> Health:
    config = gdpconfig.component("agents")
    period_s, enabled = config[f"PERIOD_{duty.name}"], config[f"ENABLED_{duty.name}"]
    return health(last_success, last_error_at, period_s=period_s, enabled=enabled, now=clock.now())


_LOADS = f"""
WITH live AS MATERIALIZED (
    SELECT computing_queue_id, CASE WHEN computing_queue_id IS NULL THEN task_queue_id END AS task_queue_id,
        count(lease_holder) AS leased,
        count(*) FILTER (WHERE lease_holder IS NULL AND status NOT IN ({JOB.delivering.sql})) AS waiting,
        count(*) FILTER (WHERE status IN ({JOB.delivering.sql})) AS delivering,
        count(*) FILTER (WHERE status = 'throttled' AND sub_status = %(user_cap)s) AS held, count(*) AS n
    FROM brokerage_job WHERE task_id = %(task)s AND ended_at IS NULL GROUP BY 1, 2
)
(
    SELECT q.name, q.status, j.waiting, j.leased, (
            SELECT count(*)::int FROM brokerage_pilot p
            WHERE p.queue_id = q.id AND p.last_seen > now() - make_interval(mins => %(minutes)s)), j.delivering, j.held, NULL::int
    FROM live j JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id ORDER BY j.waiting DESC, q.name LIMIT %(most)s
) UNION ALL (
    SELECT 'any of ' || places.n || ' queues', CASE WHEN places.served THEN 'online' ELSE coalesce(places.states, 'gone') END,
        j.n, 0, places.pilots, 0, j.held, places.n
    FROM live j JOIN brokerage_taskqueue t ON t.id = j.task_queue_id CROSS JOIN LATERAL (
        SELECT count(*)::int AS n, bool_or(q.status = ANY (%(hands_out)s)) AS served,
            string_agg(DISTINCT q.status, ' or ') AS states,
            coalesce(sum((SELECT count(*) FROM brokerage_pilot l WHERE l.queue_id = q.id
                AND l.last_seen > now() - make_interval(mins => %(minutes)s))), 0)::int AS pilots
        FROM brokerage_requirementplace p JOIN brokerage_computingqueue q ON q.id = p.computing_queue_id
        WHERE p.requirement_set_id = t.requirement_set_id) AS places
    WHERE j.computing_queue_id IS NULL ORDER BY j.n DESC LIMIT %(most)s
)
"""


def queue_loads(task_id: int, using: str = "default") -> list[QueueLoad]:
    """Where the live jobs of the task are, most waiting first; then open ones, by the queues that may run them. One
    statement.
    """
    with connections[using].cursor() as cursor:
        cursor.execute(
            _LOADS,
            {
                "task": task_id,
                "minutes": PILOT_SEEN_MIN,
                "most": MOST_QUEUES,
                "user_cap": CAUSE,
                "hands_out": sorted(HANDS_OUT),
            },
        )
        return [
            QueueLoad(name, status, waiting, leased, pilots, delivering, held, *([] if n is None else [n]))
            for name, status, waiting, leased, pilots, delivering, held, n in cursor.fetchall()
        ]
