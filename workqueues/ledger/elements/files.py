"""The files of elements: free again, or the child's; counters of their datasets with them."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from broker_site.foundation.agency.look import look_after_commit
from workqueues.states import INPUT_FILE, INPUT_TYPES

_LOCK_DATASETS = """
SELECT d.id FROM workqueues_dataset d
WHERE d.id IN (SELECT e.dataset_id FROM workqueues_element e WHERE e.id = ANY(%(elements)s)) ORDER BY d.id FOR NO KEY UPDATE
"""
_FREE = """
WITH freed AS (
    UPDATE workqueues_file SET status = 'ready', element_id = NULL WHERE element_id = ANY(%(elements)s) AND status = 'picked'
    RETURNING dataset_id
)
UPDATE workqueues_dataset d SET n_files_used = d.n_files_used - f.n
FROM (SELECT dataset_id, count(*) AS n FROM freed GROUP BY 1) f WHERE d.id = f.dataset_id
"""
_PICK_AGAIN = """
WITH picked AS (
    UPDATE workqueues_file SET status = 'picked', retry_due = NULL
    WHERE element_id = ANY(%(elements)s) AND status = 'ready' AND held = ''
    RETURNING dataset_id
)
UPDATE workqueues_dataset d SET n_files_used = d.n_files_used + p.n
FROM (SELECT dataset_id, count(*) AS n FROM picked GROUP BY 1) p WHERE d.id = p.dataset_id
"""
_KEEP = f"""
UPDATE workqueues_file SET retry_due = now() + make_interval(secs => %(seconds)s)
WHERE id = ANY(%(files)s) AND status IN ({INPUT_FILE.unused.sql})
"""
_TIMES_BACK = """
SELECT v.id, (SELECT count(DISTINCT i.element_id) FROM workqueues_elementinput i
    WHERE i.file_id = v.id AND i.status = 'untried' AND i.element_id <> %(element)s AND i.id > coalesce((
        SELECT max(x.id) FROM workqueues_elementinput x WHERE x.file_id = v.id AND x.status = 'failed'), 0))
FROM unnest(%(files)s::bigint[]) AS v(id)
"""
_LEAVE = f"""
UPDATE workqueues_file SET element_id = NULL WHERE element_id = ANY(%(elements)s) AND NOT (status IN ({INPUT_FILE.spent.sql}))
    AND type IN ({INPUT_TYPES.sql})
"""
_USE = """
WITH used AS (
    UPDATE workqueues_file SET status = 'running', last_attempt_time = now()
    WHERE element_id = ANY(%(elements)s) AND status = 'picked' RETURNING id, element_id
)
INSERT INTO workqueues_elementinput (element_id, try_nr, file_id, status)
SELECT u.element_id, e.try_nr, u.id, 'live' FROM used u JOIN workqueues_element e ON e.id = u.element_id
"""


_GIVE_UP = f"""
WITH unused AS (
    SELECT f.id, f.task_id, f.dataset_id, f.status FROM workqueues_file f
    WHERE f.element_id = %(element)s AND f.status IN ({INPUT_FILE.unused.sql}) ORDER BY f.id FOR NO KEY UPDATE
), noted AS (
    INSERT INTO workqueues_filechange (file_id, task_id, old, new, who, why)
    SELECT id, task_id, status, 'failed', %(who)s, %(why)s FROM unused
), uses AS (
    UPDATE workqueues_elementinput i SET status = 'failed' FROM unused u
    WHERE i.element_id = %(element)s AND i.try_nr = %(try_nr)s AND i.file_id = u.id AND i.status = 'untried'
), counted AS (
    UPDATE workqueues_dataset d SET n_files_used = d.n_files_used + u.n, n_files_failed = d.n_files_failed + u.n
    FROM (SELECT dataset_id, count(*) AS n FROM unused GROUP BY 1) u WHERE d.id = u.dataset_id
), of_element AS (
    UPDATE workqueues_element SET n_files_failed = n_files_failed + (SELECT count(*) FROM unused) WHERE id = %(element)s
)
UPDATE workqueues_file f SET status = 'failed', attempt_nr = greatest(f.max_attempt, f.attempt_nr + 1),
    failed_attempt = f.failed_attempt + 1, held = '', held_storage = '', look_due = NULL, retry_due = NULL
FROM unused u WHERE f.id = u.id
"""
"""The try in which they came back for the last time is the one that failed."""


def lock_datasets(elements: Sequence[int]) -> None:
    """Lock the input datasets of elements, in the order in which everybody does, before their files are touched."""
    _run(_LOCK_DATASETS, elements)


def free_files(elements: Sequence[int]) -> None:
    """The files that wait in these elements are ready, for whoever makes jobs or elements next."""
    lock_datasets(elements)
    _run(_FREE, elements)
    look_after_commit("generate", "offer")


def use_files(elements: Sequence[int]) -> int:
    """The files that wait in these elements run now, each with the row of its use: how many."""
    return _run(_USE, elements)


def pick_again(elements: Sequence[int]) -> None:
    """Files of these elements that came back unused wait in them again. The caller holds their datasets."""
    _run(_PICK_AGAIN, elements)


def keep_files(files: Sequence[int], seconds: float) -> None:
    """Files that have come back unused while a child has the rest of their element stay in it for so long: they go with it, if
    the child is done with it by then. The caller holds their datasets.
    """
    with connection.cursor() as cursor:
        cursor.execute(_KEEP, {"files": list(files), "seconds": seconds})


def times_come_back(files: Sequence[int], element: int) -> dict[int, int]:
    """From how many elements in a row each of these files came back unused, this one included."""
    if not files:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_TIMES_BACK, {"files": list(files), "element": element})
        return {id_: n + 1 for id_, n in cursor.fetchall()}


def give_up_files(element: int, try_nr: int, who: str, why: str) -> int:
    """The files of this element that came back unused fail: how many. The caller holds their datasets."""
    with connection.cursor() as cursor:
        cursor.execute(_GIVE_UP, {"element": element, "try_nr": try_nr, "who": who[:128], "why": why[:510]})
        return cursor.rowcount


def leave_files(elements: Sequence[int]) -> None:
    """Files of these elements that neither wait nor run in them belong to no element any more."""
    _run(_LEAVE, elements)


def _run(statement: str, elements: Sequence[int]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"elements": list(elements)})
        return cursor.rowcount
