"""Why a queue gets little or no work: the latest decisions about tasks that have not ended, and what is at the queue.

A bounded number of tasks, found by index; three statements and one snapshot for each set of candidates, whatever the size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connections

from brokerage.models import ComputingQueue, Decision
from brokerage.queries.decisions import decision_facts, with_snapshot
from brokerage.queries.task_status import PILOT_SEEN_MIN
from brokerage.rules.decision.declare import POLICIES
from brokerage.rules.decision.record import BadRecord, decode
from brokerage.rules.explain.why_empty import LatestDecision, Load, WhyEmpty, why_empty
from workqueues.states import TASK

MOST = 500
"""Latest decisions that are looked at."""
OLDEST_TABLES = 3
"""Different sets of candidates whose snapshots are read; a grid changes its names seldom."""
KEPT_TABLES = 16
_NAMES: dict[str, tuple[str, ...]] = {}
"""Fingerprint of candidates -> their names, in order: a digest of them, so that it never changes what it stands for."""


def why_empty_of(
    queue: ComputingQueue, vos: Sequence[str] | None = None, using: str = "default", load: Load | None = None
) -> WhyEmpty:
    """What keeps work away from a queue, from the decisions about tasks of these VOs (None = all). `load`: if known."""
    return why_empty(queue.name, load or load_of(queue, using), _seen(queue.name, vos, using))


def load_of(queue: ComputingQueue, using: str = "default") -> Load:
    """Jobs and pilots at the queue; open jobs that may go there wait there too."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            """
            SELECT count(*) FILTER (WHERE lease_holder IS NULL) + (
                    SELECT count(*) FROM brokerage_requirementplace p
                        JOIN brokerage_taskqueue t ON t.requirement_set_id = p.requirement_set_id AND t.computing_queue_id IS NULL
                        JOIN brokerage_job o ON o.task_queue_id = t.id AND o.ready_priority IS NOT NULL
                    WHERE p.computing_queue_id = %(queue)s),
                count(lease_holder),
                (SELECT count(*) FROM brokerage_pilot
                 WHERE queue_id = %(queue)s AND last_seen > now() - make_interval(mins => %(minutes)s))
            FROM brokerage_job WHERE computing_queue_id = %(queue)s AND ended_at IS NULL
            """,
            {"queue": queue.id, "minutes": PILOT_SEEN_MIN},
        )
        waiting, running, pilots = cursor.fetchone() or (0, 0, 0)
    return Load(queue.status, waiting, running, pilots)


def _seen(name: str, vos: Sequence[str] | None, using: str) -> Iterator[LatestDecision]:
    rows_of: dict[str, tuple[int, ...] | None] = {}
    for decision_id, task_id, packed in _latest(vos, using):
        try:
            record = decode(bytes(packed))
        except BadRecord:
            continue
        candidates = record.decision.candidates
        if candidates not in rows_of:
            rows_of[candidates] = _rows(name, candidates, decision_id, using) if len(rows_of) < OLDEST_TABLES else None
        rows = rows_of[candidates]
        if rows is not None:
            yield LatestDecision(task_id, decision_id, record, rows, POLICIES.get(record.decision.policy))


def _rows(name: str, candidates: str, decision_id: int, using: str) -> tuple[int, ...] | None:
    """The rows that stand for the queue in the table of a decision: its own, or those of its pseudo-queues; None: it is gone."""
    if candidates not in _NAMES:
        decision = with_snapshot(Decision.objects.using(using)).filter(id=decision_id).first()
        columns = decision_facts(decision).columns() if decision is not None else None
        if columns is None or columns.fingerprint != candidates:
            return None
        if len(_NAMES) >= KEPT_TABLES:
            _NAMES.pop(next(iter(_NAMES)), None)
        _NAMES[candidates] = tuple(columns.name.tolist())
    names = _NAMES.get(candidates, ())
    return tuple(row for row, candidate in enumerate(names) if candidate == name or candidate.startswith(f"{name}/"))


def _latest(vos: Sequence[str] | None, using: str) -> list[tuple[Any, ...]]:
    """(id, task, record) of the latest decision about queues for each of the newest tasks that have not ended."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            """
            SELECT d.id, t.id, d.record
            FROM (
                SELECT t.id FROM unnest(%(states)s) AS s(status), LATERAL (
                    SELECT id FROM workqueues_task
                    WHERE status = s.status AND (%(vos)s::text[] IS NULL OR vo = ANY (%(vos)s)) ORDER BY id DESC LIMIT %(most)s
                ) AS t ORDER BY t.id DESC LIMIT %(most)s
            ) AS t, LATERAL (
                SELECT id, record FROM brokerage_decision
                WHERE task_id = t.id AND policy <> ALL (%(nuclei)s) ORDER BY id DESC LIMIT 1
            ) AS d
            ORDER BY d.id DESC
            """,
            {
                "states": list(TASK.live),
                "vos": None if vos is None else list(vos),
                "nuclei": [name for name, policy in POLICIES.items() if policy.activity == "nucleus"],
                "most": MOST,
            },
        )
        return cursor.fetchall()
