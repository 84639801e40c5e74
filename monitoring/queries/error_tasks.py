"""How many tasks an error was met in, of what the agent tally noted: no job is looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from brokerage.queries.kept_counts import KeptCounts, Rows
from brokerage.rules.facts.rollups import MOST_ERROR_TASKS, Family
from monitoring.queries.database import alias

# A task is in one group of an error: its VO and owner never change. The window ends now, so a task is of it where its last job
# with the error is.
_TASKS = KeptCounts(f"""
SELECT g.fingerprint, least(sum(t.n), {MOST_ERROR_TASKS})::int, (SELECT tasks_from FROM brokerage_tallymark)
FROM brokerage_tallygroup g CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM (
        SELECT FROM brokerage_errortask o WHERE o.group_id = g.id AND o.last_at >= %(start)s LIMIT {MOST_ERROR_TASKS}
    ) AS latest) AS t
WHERE g.family = %(of_owner)s AND g.fingerprint = ANY (%(errors)s)
    AND (%(groups)s::int[] IS NULL OR g.id = ANY (%(groups)s)) AND (%(vos)s::text[] IS NULL OR g.vo = ANY (%(vos)s))
GROUP BY 1
""")


class ErrorTasks(NamedTuple):
    """How many tasks were noted with an error in a window, and since when they are noted; None: it is not known."""

    n: int = 0
    noted_from: datetime | None = None

    def may_be_more(self, first_seen: datetime, first_counted: datetime) -> bool:
        """Whether more than these met it. `first_seen`: when a job first ended so, `first_counted`: and of these jobs."""
        unnoted = self.noted_from is None or max(first_seen, first_counted) < self.noted_from
        return unnoted or self.n >= MOST_ERROR_TASKS


def tasks_with_errors(
    errors: Sequence[int], vos: Sequence[str] | None, start: datetime, groups: Sequence[int] | None
) -> Mapping[int, ErrorTasks]:
    """Error -> tasks of these VOs, and of these groups, with a job that ended so since `start`; None: of all. One statement."""
    values: dict[str, Any] = {"errors": list(errors), "vos": vos, "start": start, "groups": groups, "of_owner": Family.ERROR_OF}
    return _TASKS.answer(values, _by_error, using=alias())


def _by_error(found: Rows) -> Mapping[int, ErrorTasks]:
    return {error: ErrorTasks(n, noted_from) for error, n, noted_from in found}
