"""Why a task is where it is: what the server tells of it, and of the latest decision of the brokerage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from broker_site.client.connection import Connection
from broker_site.client.rows import rows

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Why:
    """`headline` is the sentence that page, command and REST share.

    `reasons`: {kind, message, task_id}, the most telling first; `throttles`: {cause, why, until}; `errors`: of its jobs by code,
    {code, n_jobs, message, job_id, n_not_retried}; `decision`: the latest one with its `explanation`, and `why_not` where a queue
    was asked for; None where none was taken; `needs_changes`: what people changed of its needs, {at, who, why, sentence}.
    """

    headline: str
    status: str
    reasons: Sequence[Document]
    throttles: Sequence[Document]
    errors: Sequence[Document]
    next_look_at: str | None
    decision: Document | None = field(repr=False, default=None)
    next_look: str = ""
    needs_changes: Sequence[Document] = ()


def why_task(connection: Connection, task_id: int, queue: str = "") -> Why:
    """What is known, by three calls. Raises Refused, with 404 where the queue took no part in the decision."""
    told = connection.get(f"tasks/{task_id}/waiting/")
    decision = None
    for latest in rows(connection, f"tasks/{task_id}/decisions/", {}, 1):
        decision = connection.get(f"decisions/{latest['id']}/", {"queue": queue or None})
    return Why(
        told["headline"],
        told["status"],
        told["reasons"],
        told["throttles"],
        told["job_errors"],
        told["next_look_at"],
        decision,
        told.get("next_look", ""),
        told.get("needs_changes", ()),
    )
