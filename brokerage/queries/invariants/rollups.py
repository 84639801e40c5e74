"""Invariants of what is counted of jobs over time. What is not counted yet is added, so they hold at every moment."""

from __future__ import annotations

from brokerage.queries.invariants.statement import Invariant
from brokerage.rules.facts.rollups import DAY_S, FLOWS, HOUR_S, OF_ERRORS, Family
from brokerage.states import JOB

_FLOWS = ", ".join(f"'{what}'" for what in FLOWS)
_OF_ERRORS = ", ".join(f"'{family}'" for family in OF_ERRORS)
INVARIANTS = (
    Invariant(
        "tally_levels",
        "The counted jobs of a VO in a state, with the moves that are not counted yet, are the jobs that are in it.",
        f"""
        SELECT 'VO ' || vo || ', ' || what || ': ' || sum(n) || ' jobs more than counted' FROM (
            SELECT t.vo, j.status, 1::bigint FROM brokerage_job j JOIN workqueues_task t ON t.id = j.task_id
            WHERE j.ended_at IS NULL
            UNION ALL
            SELECT g.vo, l.what, -l.n FROM brokerage_tallylevel l JOIN brokerage_tallygroup g ON g.id = l.group_id
            WHERE g.family = 'vo'
            UNION ALL
            SELECT t.vo, v.what, -v.n
            FROM brokerage_tallymark m
                JOIN brokerage_jobchange c ON c.xid >= pg_snapshot_xmin(m.seen::pg_snapshot) AND c.id >= m.first_id
                    AND NOT pg_visible_in_snapshot(c.xid, m.seen::pg_snapshot) AND c.old <> c.new
                JOIN brokerage_job j ON j.id = c.job_id JOIN workqueues_task t ON t.id = j.task_id
                CROSS JOIN LATERAL (VALUES (c.old, -1), (c.new, 1)) AS v(what, n)
            WHERE v.what IN ({JOB.live.sql})
        ) AS counted(vo, what, n)
        WHERE EXISTS (SELECT FROM brokerage_tallymark) GROUP BY vo, what HAVING sum(n) <> 0
        """,
    ),
    Invariant(
        "tally_steps",
        "Counts by the hour are those by five minutes, and these those by the minute, while all of these are kept.",
        f"""
        SELECT 'group ' || group_id || ', ' || what || ' in the hour of ' || hour || ': '
            || string_agg(step_s || ' s: ' || n, ', ')
        FROM (
            SELECT group_id, what, date_trunc('hour', at) AS hour, step_s, sum(n) AS n FROM brokerage_tallybucket
            WHERE step_s <= {HOUR_S} AND at >= date_trunc('hour', now() - interval '1 hour') GROUP BY 1, 2, 3, 4
        ) AS of_step WHERE n <> 0 GROUP BY group_id, what, hour HAVING count(DISTINCT n) > 1 OR count(*) <> 3
        """,
    ),
    Invariant(
        "tally_days",
        "Counts of today are those of its hours.",
        f"""
        SELECT 'group ' || group_id || ', ' || what || ': ' || sum(n) || ' more of today than of its hours' FROM (
            SELECT group_id, what, CASE WHEN step_s = {DAY_S} THEN n ELSE -n END AS n FROM brokerage_tallybucket
            WHERE step_s IN ({HOUR_S}, {DAY_S}) AND at >= date_bin('1 day', now(), '2000-01-01 00:00+00')
        ) AS of_today GROUP BY group_id, what HAVING sum(n) <> 0
        """,
    ),
    Invariant(
        "tally_families",
        "What jobs of a VO did is the same by queue, by share and kind, by all three, and by user.",
        f"""
        SELECT 'VO ' || vo || ', ' || what || ' in the hour of ' || at || ': ' || string_agg(family || ' ' || n, ', ') FROM (
            SELECT g.family, g.vo, b.what, b.at, sum(b.n) AS n
            FROM brokerage_tallybucket b JOIN brokerage_tallygroup g ON g.id = b.group_id
            WHERE b.step_s = {HOUR_S} AND b.at >= date_trunc('hour', now() - interval '1 hour') AND b.what IN ({_FLOWS})
                AND g.family NOT IN ({_OF_ERRORS}) GROUP BY 1, 2, 3, 4
        ) AS by_family GROUP BY vo, what, at HAVING count(DISTINCT n) > 1 OR count(*) <> {len(Family) - len(OF_ERRORS)}
        """,
    ),
)
