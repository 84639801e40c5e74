"""Rows of the queue list: what each computing queue is, and what waits and runs there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from brokerage.models import ComputingQueue
from brokerage.queries.task_status import PILOT_SEEN_MIN
from brokerage.states import JOB
from monitoring.queries.counts import MOST_LIVE
from monitoring.queries.database import alias, rows


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue. `pilots`: seen in the last PILOT_SEEN_MIN minutes. Sizes in MB per slot, 0 = no limit."""

    name: str
    site: str
    status: str
    jobs_waiting: int
    jobs_starting: int
    jobs_running: int
    jobs_ending: int
    pilots: int
    last_start: datetime | None
    corecount: int
    maxrss: int
    maxwdir: int
    maxtime: int


def queue_rows() -> list[QueueRow]:
    """Every computing queue by name; three statements, whatever the size."""
    jobs, pilots = _jobs(), _pilots()
    return [
        QueueRow(
            name=q.name,
            site=q.site_id,
            status=q.status,
            jobs_waiting=_sum(jobs[q.id], JOB.waiting),
            jobs_starting=_sum(jobs[q.id], JOB.starting),
            jobs_running=jobs[q.id].get("running", 0),
            jobs_ending=_sum(jobs[q.id], JOB.delivering),
            pilots=pilots.get(q.id, 0),
            last_start=q.last_start,
            corecount=q.corecount,
            maxrss=q.maxrss,
            maxwdir=q.maxwdir,
            maxtime=q.maxtime,
        )
        for q in ComputingQueue.objects.using(alias()).order_by("name")
    ]


def _sum(counts: Mapping[str, int], states: tuple[str, ...]) -> int:
    return sum(counts.get(state, 0) for state in states)


def _jobs() -> dict[int, dict[str, int]]:
    """Computing queue -> state -> jobs that have not ended."""
    found: dict[int, dict[str, int]] = defaultdict(dict)
    counted = rows(
        """
        SELECT computing_queue_id, status, count(*)
        FROM (SELECT computing_queue_id, status FROM brokerage_job WHERE ended_at IS NULL LIMIT %(most)s) AS bounded GROUP BY 1, 2
        """,
        {"most": MOST_LIVE},
    )
    for queue, status, n in counted:
        found[queue][status] = n
    return found


def _pilots() -> dict[int, int]:
    """Computing queue -> pilots that asked lately."""
    return dict(
        rows(
            """
            SELECT queue_id, count(*) FROM brokerage_pilot WHERE last_seen > now() - make_interval(mins => %(minutes)s)
            GROUP BY queue_id
            """,
            {"minutes": PILOT_SEEN_MIN},
        )
    )
