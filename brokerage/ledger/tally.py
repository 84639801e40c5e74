"""Roll-ups of jobs: each change of a job's history is counted once, in the transaction that moves the mark (decision L3).

The mark is a snapshot of the database: what it shows is counted, whatever commits later is not. So nobody is passed by, and a
transaction that is open for long holds nobody up. Who holds the mark's row counts; a second run at once leaves. Levels are kept
by differences and compared with the jobs now and then, in one statement that takes away what is not counted yet: so they agree at
any load.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from django.db import connection, transaction

from broker_site.foundation.kernel.machine import NEW
from brokerage.ledger.error_tally import count_errors
from brokerage.ledger.error_tasks import note_tasks
from brokerage.ledger.tally_groups import NO_GROUP, Group, ids_of
from brokerage.ledger.task_tally import count_tasks
from brokerage.ledger.work_tally import count_work
from brokerage.models import TallyMark
from brokerage.rules.facts.db_snapshot import seen_up_to
from brokerage.rules.facts.rollups import MADE, STARTED, STEPS, Family
from brokerage.states import JOB

_LOCK = "SELECT seen, first_id FROM brokerage_tallymark WHERE id = 1 FOR UPDATE SKIP LOCKED"
_BEGIN = "INSERT INTO brokerage_tallymark (id, seen) SELECT 1, pg_current_snapshot()::text ON CONFLICT DO NOTHING"
# Numbers of transactions begin anew in a database that was restored from a dump.
_BEGIN_ANEW = """
UPDATE brokerage_tallymark SET seen = pg_current_snapshot()::text,
    first_id = (SELECT coalesce(max(id), 0) + 1 FROM brokerage_jobchange)
WHERE pg_snapshot_xmax(seen::pg_snapshot) > pg_snapshot_xmax(pg_current_snapshot()) RETURNING id
"""
_CHANGED = """
SELECT c.at, c.old, c.new, c.job_id FROM brokerage_jobchange c
WHERE c.xid >= pg_snapshot_xmin(%(seen)s::pg_snapshot) AND NOT pg_visible_in_snapshot(c.xid, %(seen)s::pg_snapshot)
    AND c.id >= %(first)s"""
_NEW = """
SELECT count(*), (array_agg(xid ORDER BY xid DESC))[1]::text, pg_current_snapshot()::text
FROM (
    SELECT c.xid FROM brokerage_jobchange c
    WHERE c.xid >= pg_snapshot_xmin(%(seen)s::pg_snapshot) AND NOT pg_visible_in_snapshot(c.xid, %(seen)s::pg_snapshot)
        AND pg_visible_in_snapshot(c.xid, pg_current_snapshot()) AND c.id >= %(first)s
    ORDER BY c.xid LIMIT %(limit)s) AS batch
"""
_MOVE_MARK = """
UPDATE brokerage_tallymark SET seen = %(to_seen)s, counted_at = CASE WHEN %(all)s THEN now() ELSE counted_at END WHERE id = 1
"""
# The limits tell the planner how few rows these are in a long history: it would read whole tables to join them.
_FIRST = "ORDER BY c.xid, c.id LIMIT %(limit)s"
_SEEN_NOW = f"""{_CHANGED}
    AND c.xid < pg_snapshot_xmax(%(to_seen)s::pg_snapshot) AND pg_visible_in_snapshot(c.xid, %(to_seen)s::pg_snapshot)"""
BATCH = f"{_SEEN_NOW} {_FIRST}"
_SIZE = f"SELECT count(*) FROM ({_SEEN_NOW}) AS batch"
MOST_BEHIND = 100_000
"""Changes that are not counted yet with which levels are compared."""
_BEHIND = f"SELECT count(*) FROM ({_CHANGED} {_FIRST}) AS behind"
_AT_QUEUES = """
    LEFT JOIN workqueues_task t ON t.id = j.task_id LEFT JOIN brokerage_taskqueue q ON q.id = j.task_queue_id
    LEFT JOIN brokerage_computingqueue r ON r.id = j.computing_queue_id
    LEFT JOIN brokerage_computingqueue w
        ON w.id = CASE WHEN q.id IS NULL THEN j.computing_queue_id ELSE q.computing_queue_id END
"""
# A job that waits is where its task queue is, which an open job's is not; later, where it was leased.
_WHOSE = """coalesce(t.vo, '') AS vo, coalesce(t.gshare, '') AS share, coalesce(t.user_name, '') AS user_name,
    coalesce(j.kind, 0) AS kind, coalesce(w.name, '') AS waits_at, coalesce(r.name, '') AS placed_at"""
_COUNTED = f"""
counted AS (
    SELECT p.minute, v.what, p.vo, CASE WHEN v.waits THEN p.waits_at ELSE p.placed_at END AS queue,
        p.share, p.kind, p.user_name, v.n * p.n AS n
    FROM (
        SELECT date_trunc('minute', c.at) AS minute, c.old, c.new, {_WHOSE}, count(*) AS n
        FROM changed c LEFT JOIN brokerage_job j ON j.id = c.job_id {_AT_QUEUES} GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
    ) AS p CROSS JOIN LATERAL (
        SELECT p.old, -1, p.old IN ({JOB.waiting.sql}) WHERE p.old <> '{NEW}' AND p.old <> p.new
        UNION ALL SELECT p.new, 1, p.new IN ({JOB.waiting.sql}) WHERE p.new IN ({JOB.live.sql}) AND p.old <> p.new
        UNION ALL SELECT p.new, 1, p.old IN ({JOB.waiting.sql}) WHERE p.new NOT IN ({JOB.live.sql})
        UNION ALL SELECT '{MADE}', 1, true WHERE p.old = '{NEW}'
        UNION ALL SELECT '{STARTED}', 1, false WHERE p.old IN ({JOB.starting.sql}) AND p.new IN ({JOB.begun.sql})
    ) AS v(what, n, waits)
)"""
_BY_FAMILY = """
SELECT minute, what, CASE WHEN grouping(queue, share) = 0 THEN 'place' WHEN grouping(user_name) = 0 THEN 'user'
        WHEN grouping(queue) = 0 THEN 'queue' WHEN grouping(share) = 0 THEN 'share' ELSE 'vo' END,
    vo, coalesce(queue, ''), coalesce(share, ''), coalesce(kind, 0), coalesce(user_name, ''), sum(n)::bigint
FROM {counted}
GROUP BY GROUPING SETS ((minute, what, vo), (minute, what, vo, queue), (minute, what, vo, share, kind),
    (minute, what, vo, queue, share, kind), (minute, what, vo, share, user_name))
HAVING sum(n) <> 0
"""
_COUNT = f"WITH changed AS MATERIALIZED ({BATCH}), {_COUNTED} {_BY_FAMILY.format(counted='counted')}"
_FACTS = f"""
WITH changed AS MATERIALIZED ({_CHANGED} {_FIRST}), {_COUNTED}, alive AS (
    SELECT status, task_id, task_queue_id, computing_queue_id, kind, count(*) AS n FROM brokerage_job
    WHERE ended_at IS NULL GROUP BY 1, 2, 3, 4, 5
), facts AS (
    SELECT date_trunc('minute', now()) AS minute, status AS what, vo,
        CASE WHEN status IN ({JOB.waiting.sql}) THEN waits_at ELSE placed_at END AS queue, share, kind, user_name, n
    FROM (SELECT j.status, j.n, {_WHOSE} FROM alive j {_AT_QUEUES}) AS placed
    UNION ALL
    SELECT date_trunc('minute', now()), what, vo, queue, share, kind, user_name, -n FROM counted WHERE what IN ({JOB.live.sql})
) {_BY_FAMILY.format(counted="facts")}
"""
_LEVELS = """
SELECT date_trunc('minute', now()), l.what, g.family, g.vo, g.queue, g.share, g.kind, g.user_name, -l.n
FROM brokerage_tallylevel l JOIN brokerage_tallygroup g ON g.id = l.group_id WHERE l.n <> 0
"""
_COMPARED = """
UPDATE brokerage_tallymark SET compared_at = now(), off = %(off)s, moved = %(moved)s, off_in_all = off_in_all + %(off)s,
    off_at = CASE WHEN %(off)s > 0 THEN now() ELSE off_at END, off_said = CASE WHEN %(off)s > 0 THEN %(said)s ELSE off_said END
WHERE id = 1
"""
_ADD_LEVELS = """
INSERT INTO brokerage_tallylevel (group_id, what, n) SELECT * FROM unnest(%s::int[], %s::text[], %s::bigint[])
ON CONFLICT (group_id, what) DO UPDATE SET n = brokerage_tallylevel.n + EXCLUDED.n
"""
_ADD = """
INSERT INTO brokerage_tallybucket (step_s, group_id, what, at, n)
SELECT s.step, d.id, d.what, date_bin(make_interval(secs => s.step), d.at, '2000-01-01 00:00+00'), sum(d.n)
FROM unnest(%s::int[], %s::text[], %s::timestamptz[], %s::bigint[]) AS d(id, what, at, n), unnest(%s::int[]) AS s(step)
GROUP BY 1, 2, 3, 4 HAVING sum(d.n) <> 0
ON CONFLICT (group_id, step_s, what, at) DO UPDATE SET n = brokerage_tallybucket.n + EXCLUDED.n
"""
_FORGET = """
DELETE FROM brokerage_tallybucket WHERE id IN (
    SELECT id FROM brokerage_tallybucket WHERE step_s = %s AND at < now() - make_interval(secs => %s) ORDER BY at LIMIT %s)
"""
_NO_LEVELS = "DELETE FROM brokerage_tallylevel WHERE n = 0"
# Group by group: a join would read all buckets.
_NO_GROUPS = """
DELETE FROM brokerage_tallygroup g WHERE (SELECT 1 FROM brokerage_tallylevel l WHERE l.group_id = g.id LIMIT 1) IS NULL
    AND (SELECT 1 FROM brokerage_tallybucket b WHERE b.group_id = g.id LIMIT 1) IS NULL
    AND (SELECT 1 FROM brokerage_errortask t WHERE t.group_id = g.id LIMIT 1) IS NULL
"""
_NO_ERRORS = """
DELETE FROM brokerage_errorfingerprint f
WHERE NOT EXISTS (SELECT FROM brokerage_tallygroup g WHERE g.family = 'error' AND g.fingerprint = f.id)
"""

Counts = Mapping[tuple[datetime, str, Group], int]


class _Mark(NamedTuple):
    seen: str
    first: int


class TooFarBehind(Exception):
    """There are too many changes that are not counted yet."""


class Compared(NamedTuple):
    """By how many jobs the levels were off, and how many jobs were elsewhere without having moved."""

    off: int
    moved: int


def count_changes(limit: int) -> int | None:
    """Count about so many of the changes that nobody has counted, those of one transaction together: how many; fewer than
    `limit` where these are all. None: another run is at it.

    The first call only begins: what was before is not counted, but for the jobs as they stand.
    """
    with transaction.atomic():
        mark = _locked()
        if mark is None:
            return None
        named: dict[str, str | int | bool] = {"seen": mark.seen, "first": mark.first, "limit": limit}
        with connection.cursor() as cursor:
            cursor.execute(_NEW, named)
            n, last, now = cursor.fetchone() or (0, None, mark.seen)
            named |= {"to_seen": seen_up_to(mark.seen, now, int(last or 0)) if n == limit else now, "all": n < limit}
            if n == limit:
                cursor.execute(_SIZE, named)
                named["limit"] = n = (cursor.fetchone() or (n,))[0]
            if n:
                cursor.execute(_COUNT, named)
                counts = _by_group(cursor.fetchall())
                errors = count_errors(BATCH, named)
                counts |= {**errors.counts, **count_work(BATCH, named)}
                note_tasks(errors.tasks, _add(counts))
            if n < limit:
                count_tasks()
            cursor.execute(_MOVE_MARK, named)
        return int(n)


def compare_levels() -> Compared | None:
    """Compare the levels with the jobs, and put them right: by how much they were off. None: another run is at it.

    One statement reads all jobs that have not ended. A queue, share or owner may change without a move of the job, so only
    numbers by VO and state tell that something was not counted. Raises TooFarBehind where much is not counted yet.
    """
    with transaction.atomic():
        mark = _locked()
        return None if mark is None else _compare(mark)


def forget_buckets(step_s: int, keep_s: float, limit: int) -> int:
    """Remove buckets of this length that are older than that, so many at most: how many."""
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, [step_s, keep_s, limit])
        return int(cursor.rowcount)


def _locked() -> _Mark | None:
    """The mark, held to the end of the transaction; where there is none, or none of this database, it begins here."""
    with connection.cursor() as cursor:
        cursor.execute(_BEGIN_ANEW)
        begun = cursor.fetchone()
        if begun is None and not TallyMark.objects.exists():
            cursor.execute(_BEGIN)
            begun = cursor.rowcount == 1
        cursor.execute(_LOCK)
        row = cursor.fetchone()
        if row is None:
            return None
        mark = _Mark(*row)
        if begun:
            _compare(mark, told=False)
        return mark


def _compare(mark: _Mark, *, told: bool = True) -> Compared:
    with connection.cursor() as cursor:
        named: dict[str, str | int] = {"seen": mark.seen, "first": mark.first, "limit": MOST_BEHIND}
        cursor.execute(_FACTS, named)
        facts = cursor.fetchall()
        cursor.execute(_BEHIND, named)
        if (cursor.fetchone() or (0,))[0] == MOST_BEHIND:
            raise TooFarBehind(f"{MOST_BEHIND:,} moves of jobs are not counted yet: the levels cannot be compared")
        cursor.execute(_LEVELS)
        wrong = {key: n for key, n in _by_group([*facts, *cursor.fetchall()]).items() if n}
        _add(wrong)
        off = {(group.vo, what): n for (_, what, group), n in wrong.items() if group.family == Family.VO}
        by_place = sum(abs(n) for (_, _, group), n in wrong.items() if group.family in (Family.PLACE, Family.USER)) // 2
        n_off = sum(map(abs, off.values())) if told else 0
        said = ", ".join(f"{vo} {what} {n:+d}" for (vo, what), n in sorted(off.items()))
        compared = Compared(n_off, 0 if n_off or not told else by_place)
        cursor.execute(_COMPARED, {"off": compared.off, "moved": compared.moved, "said": said[:255]})
        cursor.execute(_NO_LEVELS)
        cursor.execute(_NO_GROUPS)
        cursor.execute(_NO_ERRORS)
    return compared


def _by_group(rows: Iterable[tuple[datetime, str, str, str, str, str, int, str, int]]) -> dict[tuple[datetime, str, Group], int]:
    counts: dict[tuple[datetime, str, Group], int] = defaultdict(int)
    for minute, what, family, vo, queue, share, kind, user_name, n in rows:
        group = NO_GROUP._replace(family=family, vo=vo, queue=queue, share=share, kind=kind, user_name=user_name)
        counts[minute, what, group] += n
    return dict(counts)


def _add(counts: Counts) -> Mapping[Group, int]:
    """Add to the buckets of all lengths, and to the levels what is one: the number of each group."""
    if not counts:
        return {}
    ids = ids_of({group for _, _, group in counts})
    levels: dict[tuple[int, str], int] = defaultdict(int)
    for (_, what, group), n in counts.items():
        if what in JOB.live:
            levels[ids[group], what] += n
    lines = [(ids[group], what, minute, n) for (minute, what, group), n in counts.items()]
    with connection.cursor() as cursor:
        cursor.execute(_ADD, [*map(list, zip(*lines, strict=True)), list(STEPS)])
        if rows := [(id_, what, n) for (id_, what), n in levels.items() if n]:
            cursor.execute(_ADD_LEVELS, list(map(list, zip(*rows, strict=True))))
    return ids
