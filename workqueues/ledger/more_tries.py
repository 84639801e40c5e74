"""More tries for input files, in the transaction of whoever holds the locks of their datasets.

A retry of the task, one of a job, and a change of a task that lives give them.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from workqueues.queries.ranges import GIVEN_BACK

MORE = """
    max_attempt = CASE WHEN f.max_attempt IS NOT NULL THEN least(greatest(f.max_attempt, f.attempt_nr) + %(more)s, 30000) END,
    max_failure = CASE WHEN f.max_failure IS NOT NULL
        THEN least(greatest(f.max_failure, f.failed_attempt) + %(more)s, 30000) END"""
"""What has no limit (NULL) gets none; none is larger than its column holds."""

_REVIVED = f"""
WITH noted AS (
    INSERT INTO workqueues_filechange (file_id, task_id, old, new, who, why)
    SELECT id, %(task)s, 'failed', 'ready', %(who)s, %(why)s FROM workqueues_file
    WHERE dataset_id = ANY(%(datasets)s) AND status = 'failed' AND (%(files)s::bigint[] IS NULL OR id = ANY(%(files)s))
), revived AS (
    UPDATE workqueues_file f SET status = 'ready', retry_due = NULL, {MORE}
    WHERE f.dataset_id = ANY(%(datasets)s) AND f.status = 'failed'
        AND (%(files)s::bigint[] IS NULL OR f.id = ANY(%(files)s)) RETURNING f.dataset_id
)
SELECT dataset_id, count(*) FROM revived GROUP BY dataset_id ORDER BY dataset_id
"""
_PARTIAL = f"""
UPDATE workqueues_file f SET status = 'partial'
WHERE f.dataset_id = ANY(%(datasets)s) AND f.status = 'ready' AND {GIVEN_BACK} = 'partial'
"""


def revive(
    task_id: int, datasets: Sequence[int], more: int, who: str, why: str, files: Sequence[int] | None = None
) -> dict[int, int]:
    """Files of these locked datasets that were given up, all or these, are ready, or partial, with so many more tries: how many
    of each dataset. The counters of the datasets are the caller's.
    """
    values: dict[str, int | str | list[int] | None] = {
        "task": task_id, "who": who[:128], "why": why, "datasets": list(datasets), "more": more,
        "files": None if files is None else list(files),
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_REVIVED, values)
        revived = dict(cursor.fetchall())
    go_on(datasets)
    return revived


def go_on(datasets: Sequence[int]) -> None:
    """Ready files of these locked datasets of which events are left, and others done, go on with what is left."""
    with connection.cursor() as cursor:
        cursor.execute(_PARTIAL, {"datasets": list(datasets)})
