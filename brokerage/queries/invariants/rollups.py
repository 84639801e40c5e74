"""Invariants of what is counted of jobs over time. What is not counted yet is added, so they hold at every moment."""

from __future__ import annotations

from brokerage.queries.invariants.statement import Invariant
from brokerage.states import JOB

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
                JOIN brokerage_jobchange c ON (c.xid, c.id) > (m.xid, m.change_id) AND c.id >= m.first_id AND c.old <> c.new
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
        """
        SELECT 'group ' || group_id || ', ' || what || ' in the hour of ' || hour || ': '
            || string_agg(step_s || ' s: ' || n, ', ')
        FROM (
            SELECT group_id, what, date_trunc('hour', at) AS hour, step_s, sum(n) AS n FROM brokerage_tallybucket
            WHERE at >= date_trunc('hour', now() - interval '1 hour') GROUP BY 1, 2, 3, 4
        ) AS of_step WHERE n <> 0 GROUP BY group_id, what, hour HAVING count(DISTINCT n) > 1 OR count(*) <> 3
        """,
    ),
)
