"""Users by the jobs of their tasks: how many wait and run, and how many ended in the last day, from the counts over time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.kernel import clock
from brokerage.queries.kept_counts import KeptCounts, Rows
from brokerage.rules.explain.task_status_text import ErrorGroup, JobErrors
from brokerage.rules.facts.rollups import HOUR_S, step_after
from brokerage.states import JOB
from monitoring.queries.database import alias, rows, seen_by
from workqueues.rules.shares.mapping import UNDEFINED

MOST_USERS = 100
"""Users that a page shows, those with most jobs."""
MOST_LISTED = 100_000
"""Users that JSON, CSV and REST have."""
DAY_H = 24

_USERS = KeptCounts(f"""
WITH g AS MATERIALIZED (
    SELECT id, user_name, share FROM brokerage_tallygroup
    WHERE family = 'user' AND user_name <> '' AND (%(everything)s OR vo = ANY(%(vos)s))
        AND (%(shares)s::text[] IS NULL OR share = ANY (%(shares)s))
        AND (%(name)s::text IS NULL OR user_name = %(name)s) AND (%(part)s = '' OR strpos(lower(user_name), lower(%(part)s)) > 0)
), alive AS MATERIALIZED (
    SELECT g.user_name, g.share,
        coalesce(sum(l.n::int) FILTER (WHERE l.what IN ({JOB.waiting.sql})), 0) AS waiting,
        coalesce(sum(l.n::int) FILTER (WHERE l.what IN ({JOB.leased.sql})), 0) AS running,
        coalesce(sum(l.n::int) FILTER (WHERE l.what IN ({JOB.delivering.sql})), 0) AS ending
    FROM g JOIN brokerage_tallylevel l ON l.group_id = g.id WHERE l.n > 0 GROUP BY 1, 2
), first AS MATERIALIZED (
    SELECT user_name FROM alive GROUP BY 1
    ORDER BY sum(running) DESC, sum(ending) DESC, sum(waiting) DESC, user_name LIMIT %(most)s
), shown AS MATERIALIZED (
    SELECT id, user_name, share FROM g
    WHERE (SELECT count(*) FROM first) < %(most)s OR user_name IN (SELECT user_name FROM first)
), counted AS (
    SELECT user_name, share, waiting, running, ending, 0 AS finished, 0 AS failed FROM alive
    UNION ALL
    SELECT s.user_name, s.share, 0, 0, 0, coalesce(sum(b.n::int) FILTER (WHERE b.what = 'finished'), 0),
        coalesce(sum(b.n::int) FILTER (WHERE b.what = 'failed'), 0)
    FROM shown s JOIN brokerage_tallybucket b ON b.group_id = s.id
    WHERE b.step_s = {HOUR_S} AND b.what IN ({JOB.reported.sql}) AND b.at >= %(since)s
    GROUP BY 1, 2
), users AS (
    SELECT user_name, array_agg(DISTINCT share ORDER BY share) FILTER (WHERE share NOT IN ('', '{UNDEFINED}')) AS shares,
        sum(waiting)::bigint AS waiting, sum(running)::bigint AS running, sum(ending)::bigint AS ending,
        sum(finished)::bigint AS finished, sum(failed)::bigint AS failed
    FROM counted GROUP BY 1
)
SELECT user_name, coalesce(shares, ARRAY[]::text[]), waiting, running, ending, finished, failed, count(*) OVER (),
    (SELECT counted_at FROM brokerage_tallymark)
FROM users ORDER BY running DESC, ending DESC, waiting DESC, finished + failed DESC, user_name LIMIT %(most)s
""")

MOST_TASKS, MOST_ENDED, MOST_CODES = 30, 300, 10
"""The newest tasks of a user, the newest ended jobs of each, and the codes that are told."""
_ERRORS = f"""
WITH tasks AS MATERIALIZED (
    SELECT id FROM workqueues_task WHERE user_name = %(user)s AND (%(everything)s OR vo = ANY(%(vos)s))
    ORDER BY id DESC LIMIT %(tasks)s
), ended AS MATERIALIZED (
    SELECT j.id, j.status FROM tasks CROSS JOIN LATERAL (
        SELECT id, status FROM brokerage_job
        WHERE task_id = tasks.id AND ended_at IS NOT NULL AND ended_at > now() - make_interval(hours => {DAY_H})
        ORDER BY ended_at DESC LIMIT %(ended)s) AS j
)
SELECT r.error_code, count(*), mode() WITHIN GROUP (ORDER BY split_part(r.error_message, E'\\n', 1)), max(r.job_id), false,
    (SELECT count(*) FROM ended)
FROM ended JOIN brokerage_jobresult r ON r.job_id = ended.id
WHERE ended.status IN ({JOB.unsuccessful.sql}) AND r.error_code <> ''
GROUP BY r.error_code ORDER BY count(*) DESC, r.error_code LIMIT %(codes)s
"""


@dataclass(frozen=True, slots=True)
class UserRow:
    """One owner of tasks: shares of the jobs that follow; how many wait, have a slot, and have their outputs under way; how many
    finished and failed in the whole hours of the last day.
    """

    user_name: str
    shares: Sequence[str]
    waiting: int
    running: int
    ending: int
    finished: int
    failed: int


@dataclass(frozen=True, slots=True)
class Users:
    """Those with most jobs first; `n`: how many there are; where more are alive than are shown, of these."""

    rows: Sequence[UserRow]
    n: int
    counted_at: datetime | None


def user_rows(
    scope: VoScope, shares: Collection[str] | None = None, part: str = "", most: int = MOST_USERS, name: str | None = None
) -> Users:
    """Owners with jobs alive, or that ended in the last day, in these shares, None: in all. `part`: of their names; `name`: only
    the one with it. One statement.
    """
    values = {"shares": None if shares is None else sorted(shares), "part": part, "most": most, "name": name}
    since = step_after(clock.now() - timedelta(hours=DAY_H), HOUR_S)
    return _USERS.answer({**seen_by(scope), **values, "since": since}, _users, using=alias())


def _users(found: Rows) -> Users:
    n, counted_at = found[0][-2:] if found else (0, None)
    return Users([UserRow(*row[:-2]) for row in found], n, counted_at)


def user_errors(user_name: str, scope: VoScope) -> JobErrors:
    """With what the newest jobs of the user's newest tasks ended in the last day; one bounded statement."""
    bounds = {"tasks": MOST_TASKS, "ended": MOST_ENDED, "codes": MOST_CODES}
    found = rows(_ERRORS, {**seen_by(scope), **bounds, "user": user_name})
    return JobErrors(tuple(ErrorGroup(*row[:5]) for row in found), found[0][5] if found else 0)
