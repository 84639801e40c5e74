"""How many jobs are in each state by what the agent tally keeps: small tables, whatever the number of jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from brokerage.models import ComputingQueue, TallyMark
from brokerage.queries.kept_counts import KeptCounts, Rows
from brokerage.queries.open_places import MOST_OPEN, OPEN_JOBS
from monitoring.queries.database import alias, rows

_AT_QUEUES = """
SELECT g.queue, l.what, sum(l.n::int) FROM brokerage_tallygroup g JOIN brokerage_tallylevel l ON l.group_id = g.id
WHERE g.family = 'queue' AND (%(queue)s::text IS NULL OR g.queue = %(queue)s) GROUP BY 1, 2 HAVING sum(l.n::int) > 0
"""
_LEVELS = KeptCounts(_AT_QUEUES)


def levels_at_queues(queue: str | None = None) -> Mapping[str, Mapping[str, int]]:
    """Computing queue -> state -> jobs, of all VOs; jobs that wait and may go to several queues are at none. One statement."""
    return _LEVELS.answer({"queue": queue}, _by_queue, using=alias())


def _by_queue(found: Rows) -> Mapping[str, Mapping[str, int]]:
    levels: dict[str, dict[str, int]] = defaultdict(dict)
    for name, state, n in found:
        levels[name][state] = n
    return dict(levels)


_AT_QUEUE = f"""
SELECT what, n FROM ({_AT_QUEUES}) AS levels(queue, what, n)
UNION ALL SELECT '', n FROM ({OPEN_JOBS.replace("%(queue)s", "%(id)s")}) AS open(queue, n)
"""


def jobs_at(queue: ComputingQueue) -> tuple[Mapping[str, int], int]:
    """State -> jobs at the queue, of all VOs; and jobs that wait and may go there or to others, up to a bound. One statement."""
    jobs = dict(rows(_AT_QUEUE, {"queue": queue.name, "id": queue.id, "most": MOST_OPEN}))
    return jobs, jobs.pop("", 0)


def counted_at() -> datetime | None:
    """Up to when jobs are counted; None: nothing is yet. One statement."""
    return TallyMark.objects.using(alias()).values_list("counted_at", flat=True).first()
