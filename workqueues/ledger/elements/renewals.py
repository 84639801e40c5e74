"""What a child broker says of elements that go on as they were: its words and the new ends of their leases, in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db import connection

from workqueues.queries.speakers import Speaker
from workqueues.rules.elements.messages import ElementReport
from workqueues.states.elements import ELEMENT


class Renewed(NamedTuple):
    """An element whose lease was renewed, and how its task stands."""

    id: int
    try_nr: int
    status: str
    task_status: str
    priority: int


_RENEW = f"""
WITH held AS MATERIALIZED (
    SELECT e.id, v.sentence, v.decision FROM workqueues_element e
    JOIN unnest(%(ids)s::bigint[], %(tries)s::bigint[], %(incarnations)s::uuid[], %(states)s::text[], %(sentences)s::text[],
        %(decisions)s::text[]) AS v(id, try_nr, incarnation, state, sentence, decision)
        ON v.id = e.id AND v.try_nr = e.try_nr AND v.incarnation = e.incarnation AND v.state = e.status
    WHERE e.child_id = %(child)s AND e.status IN ({ELEMENT.at_work.sql})
    ORDER BY e.id FOR NO KEY UPDATE OF e SKIP LOCKED
)
UPDATE workqueues_element e SET sentence = h.sentence, decision = h.decision, told_at = statement_timestamp(),
    lease_until = now() + make_interval(secs => %(lease_s)s), priority = t.current_priority
FROM held h, workqueues_task t WHERE e.id = h.id AND t.id = e.task_id
RETURNING e.id, e.try_nr, e.status, t.status, t.current_priority
"""


def renew(child: Speaker, reports: Sequence[ElementReport], lease_s: float) -> list[Renewed]:
    """Renew the leases of those elements of which nothing new is said: no end, and the state that they have. Others are left, and
    those that somebody else just holds.
    """
    quiet = [report for report in reports if not report.ends and report.state in ELEMENT.at_work]
    if not quiet:
        return []
    values: dict[str, Any] = {
        "child": child.id,
        "lease_s": lease_s,
        "ids": [report.id for report in quiet],
        "tries": [report.try_nr for report in quiet],
        "incarnations": [str(report.incarnation) for report in quiet],
        "states": [report.state for report in quiet],
        "sentences": [report.sentence for report in quiet],
        "decisions": [report.decision for report in quiet],
    }
    with connection.cursor() as cursor:
        cursor.execute(_RENEW, values)
        return [Renewed(*row) for row in cursor.fetchall()]
