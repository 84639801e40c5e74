"""What jobs that finished had worked through, and how long jobs waited that began, among the changes that are counted.

What is work: `brokerage.queries.job_work`. Waits are kept by VO, by queue, and by share and kind alone: each class of them is a
row.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import connection

from brokerage.ledger.tally_groups import NO_GROUP, Group
from brokerage.queries import job_work
from brokerage.rules.facts.rollups import COLUMNS, EVENTS, FILES, Family
from brokerage.rules.facts.wait_classes import BOUNDS_S, WAITS
from brokerage.states import JOB

_BEGAN = f"c.old IN ({JOB.starting.sql}) AND c.new IN ({JOB.begun.sql})"
_WORK = f"""
WITH changed AS MATERIALIZED ({{batch}})
SELECT date_trunc('minute', c.at), v.what, coalesce(t.vo, ''), coalesce(q.name, ''), coalesce(t.gshare, ''), j.kind,
    coalesce(t.user_name, ''), sum(v.n)::bigint
FROM changed c JOIN brokerage_jobspec s ON s.job_id = c.job_id JOIN brokerage_job j ON j.id = c.job_id
    LEFT JOIN workqueues_task t ON t.id = j.task_id LEFT JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
    CROSS JOIN LATERAL (
        SELECT '{FILES}', {job_work.INPUT_FILES} WHERE c.new = 'finished' AND {job_work.IS_WORK}
        UNION ALL SELECT '{EVENTS}', s.n_events WHERE c.new = 'finished' AND {job_work.IS_WORK}
        UNION ALL
        SELECT (%(waits)s::text[])[1 + width_bucket(extract(epoch FROM c.at - s.created_at)::float8, %(bounds)s::float8[])], 1
        WHERE {_BEGAN}
    ) AS v(what, n)
WHERE v.n > 0 AND (c.new = 'finished' OR {_BEGAN}) GROUP BY 1, 2, 3, 4, 5, 6, 7
"""
WORK_BY = (Family.VO, Family.QUEUE, Family.SHARE, Family.PLACE, Family.USER)
WAITS_BY = (Family.VO, Family.QUEUE, Family.SHARE)


def count_work(batch: str, values: Mapping[str, Any]) -> dict[tuple[datetime, str, Group], int]:
    """Input files and events of jobs that finished, and jobs that began by how long they had waited since they were made, among
    the changes that the statement `batch` gives.
    """
    with connection.cursor() as cursor:
        cursor.execute(_WORK.format(batch=batch), {**values, "waits": list(WAITS), "bounds": list(BOUNDS_S)})
        found = cursor.fetchall()
    counts: dict[tuple[datetime, str, Group], int] = {}
    for minute, what, vo, queue, share, kind, user_name, n in found:
        whole = Group("", vo, queue, share, kind, user_name, 0)._asdict()
        for family in WAITS_BY if what in WAITS else WORK_BY:
            group = NO_GROUP._replace(family=family.value, **{column: whole[column] for column in COLUMNS[family]})
            key = (minute, what, group)
            counts[key] = counts.get(key, 0) + n
    return counts
