"""Pulled elements that stand still here: the facts by which the agent `pull` gives them back to the parent (row W6)."""

from __future__ import annotations

from django.db import connection

from workqueues.rules.elements.giving_back import IdleLimits, StandingElement
from workqueues.states import MASTER_TYPES, TASK
from workqueues.states.elements import ELEMENT

_STANDING = f"""
SELECT s.id, s.sites, s.status, s.task_status, s.idle_s, s.quarantined,
    (SELECT min(o.max_serial_nr - o.serial_nr) FROM workqueues_outputtemplate o WHERE o.task_id = s.task_id)::int,
    (SELECT coalesce(sum(d.n_files_to_be_used - d.n_files_used), 0) FROM workqueues_dataset d
        WHERE d.task_id = s.task_id AND d.type IN ({MASTER_TYPES.sql}) AND d.master_id IS NULL)::int,
    s.said, s.limit_s, EXISTS (SELECT FROM workqueues_file f WHERE f.task_id = s.task_id AND f.held <> '')
FROM (
    SELECT p.id, p.status, ARRAY(SELECT jsonb_array_elements_text(p.work -> 'sites')) AS sites, t.id AS task_id,
        coalesce(t.status, '') AS task_status, coalesce(t.error_dialog, '') AS said,
        t.quarantined_at IS NOT NULL AS quarantined, extract(epoch FROM now() - greatest(p.pulled_at, t.command_time,
            CASE WHEN t.start_time IS NULL AND t.status NOT IN ({TASK.stuck.sql}) THEN t.status_since END, (
            SELECT max(i.works_since) FROM workqueues_installation i), (
            SELECT max(j.ended_at) FROM brokerage_job j WHERE j.task_id = t.id AND j.ended_at IS NOT NULL)))::float8 AS idle_s,
        l.limit_s
    FROM workqueues_pulledelement p LEFT JOIN workqueues_task t ON t.id = p.task_id
    CROSS JOIN LATERAL (SELECT CASE WHEN p.status IN ({ELEMENT.accepting("acquire").sql}) AND (
        SELECT max(b.last_contact) FROM workqueues_parentbroker b) > p.pulled_at
        THEN %(unfetched)s ELSE %(standstill)s END::float8 AS limit_s) l
    WHERE p.ended_at IS NULL AND p.refused = '' AND p.given_back = '' AND p.status IN ({ELEMENT.returnable.sql})
        AND (t.id IS NULL OR t.status IN ({TASK.accepting("abort").sql}))
        AND NOT (p.work ? 'paused' OR t.status IS NOT DISTINCT FROM 'paused' AND t.command_by = %(who)s)
        AND (p.pulled_at < now() - make_interval(secs => l.limit_s)
            OR t.status IN ({TASK.stuck.sql}) OR t.quarantined_at IS NOT NULL)
        AND NOT EXISTS (SELECT FROM brokerage_job j WHERE j.task_id = t.id AND j.ended_at IS NULL)
) s
WHERE s.idle_s > s.limit_s OR s.task_status IN ({TASK.stuck.sql}) OR s.quarantined
ORDER BY s.task_id IS NULL, s.idle_s DESC LIMIT %(most)s
"""


_TOLD = (
    "sites", "status", "task_status", "idle_s", "quarantined", "serials_left", "files_left", "said", "limit_s", "held",
)  # fmt: skip
"""What of an element the columns of _STANDING are, behind its id."""


def standing_elements(who: str, limits: IdleLimits, most: int) -> dict[int, StandingElement]:
    """By id, those longest first of which no job lives, and which are idle for too long or have tasks that are stuck; none that
    the parent wants to pause. `who`: this agent, which pauses tasks for the parent.
    """
    values: dict[str, str | float | int] = {
        "who": who,
        "standstill": limits.standstill_s,
        "unfetched": limits.unfetched_s,
        "most": most,
    }
    with connection.cursor() as cursor:
        cursor.execute(_STANDING, values)
        return {id_: StandingElement(**dict(zip(_TOLD, row, strict=True))) for id_, *row in cursor.fetchall()}
