"""How many jobs pilots took at each queue in the last rounds of generate (decision B19).

Read from the moves of jobs, which are there anyway: nothing is written at a start, and no counter can be wrong.
"""

from __future__ import annotations

from collections import defaultdict

from django.db import connection

from broker_site.foundation import gdpconfig

ROUNDS = 2
"""What began in so many of the last rounds counts; a round is at most a period of the agent long, also where it made no job."""
MOST_MOVES = 20_000
"""Moves of jobs that are looked through; where more happened in two rounds, nobody waits for a few starts."""


def last_change() -> int:
    """The number of the last move of a job."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(id), 0) FROM brokerage_jobchange")
        return int(cursor.fetchone()[0])


def recent_starts(upto: int) -> dict[str, dict[str, int]]:
    """Queue -> share -> jobs that pilots took there in the last two rounds: since those that made jobs, if that was just now.

    `upto`: the last move of a job (`last_change`).

    Two statements: with the number in it the second one is planned for what it reads.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT min(last_change) FROM (SELECT last_change FROM brokerage_placementround ORDER BY id DESC LIMIT %s) AS r",
            [ROUNDS],
        )
        (since,) = cursor.fetchone()
        if since is None:
            return {}
        cursor.execute(
            """
            SELECT q.name, t.gshare, count(*) FROM brokerage_jobchange c JOIN brokerage_job j ON j.id = c.job_id
            JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id JOIN workqueues_task t ON t.id = j.task_id
            WHERE c.id > %s AND c.new = 'sent' AND c.at > now() - make_interval(secs => %s) GROUP BY 1, 2
            """,
            [max(since, upto - MOST_MOVES), ROUNDS * gdpconfig.value("agents", "PERIOD_generate")],
        )
        starts: dict[str, dict[str, int]] = defaultdict(dict)
        for queue, share, n in cursor:
            starts[queue][share or ""] = n
        return starts
