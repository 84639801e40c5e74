"""Input files that are held until they are staged from tape, and where their copies are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection

from brokerage.models import StorageEndpoint
from brokerage.rules.grid.storage_root import access_left
from workqueues.queries.read_grants import INPUT_IN_CATALOGUE
from workqueues.rules.jobs.staging import STAGED_FIRST

MOST = 5000
"""Files that are looked at in one go."""

_HELD = f"""
SELECT f.id, f.task_id, f.dataset_id, f.held, t.id,
    EXISTS (SELECT FROM workqueues_replica r JOIN brokerage_storageendpoint e ON e.name = r.storage
        WHERE r.file_id = t.id AND r.state = 'available' AND NOT e.is_tape AND e.state = 'ACTIVE'),
    coalesce((SELECT min(r.storage) FROM workqueues_replica r JOIN brokerage_storageendpoint e ON e.name = r.storage
        WHERE r.file_id = t.id AND r.state = 'available' AND e.is_tape AND e.state = 'ACTIVE'), ''),
    EXISTS (SELECT FROM brokerage_transfer x JOIN brokerage_transferwish w ON w.transfer_id = x.id
        WHERE x.file_id = t.id AND x.ended_at IS NULL AND w.closed_at IS NULL AND w.dataset_id = f.dataset_id AND w.role = 'stage'
            AND w.job_id IS NULL),
    (SELECT x.reason FROM brokerage_transferwish w JOIN brokerage_transfer x ON x.id = w.transfer_id
        WHERE w.task_id = f.task_id AND w.dataset_id = f.dataset_id AND w.role = 'stage' AND w.job_id IS NULL
            AND x.file_id = t.id AND x.ended_at > now() - make_interval(secs => %(again)s) AND x.status <> 'done'
        ORDER BY x.id DESC LIMIT 1)
FROM workqueues_task k JOIN workqueues_file f ON f.task_id = k.id AND f.held LIKE '{STAGED_FIRST}%%' AND f.status = 'ready'
    JOIN workqueues_dataset d ON d.id = f.dataset_id
    LEFT JOIN workqueues_cataloguedataset c ON {INPUT_IN_CATALOGUE}
    LEFT JOIN workqueues_cataloguefile t ON t.dataset_id = c.id AND t.lfn = f.lfn
WHERE k.id = ANY(%(tasks)s) AND f.held <> '' AND f.id > %(after)s ORDER BY f.id LIMIT %(most)s
"""
_TASKS = "SELECT id FROM workqueues_task WHERE ended_at IS NULL AND split_rule ~ '(^|,)IS=1(,|$)'"


class StagedFile(NamedTuple):
    """A file that is held: why, what it is in the catalogue (None: unknown there), whether a disk has it, which tape does.

    `under_way`: it is brought for its task; `failure`: why it lately did not come.
    """

    id: int
    task_id: int
    dataset_id: int
    held: str
    catalogue_id: int | None
    on_disk: bool
    tape: str
    under_way: bool
    failure: str | None


def staging_tasks() -> list[int]:
    """Tasks whose input is staged before it is used."""
    with connection.cursor() as cursor:
        cursor.execute(_TASKS)
        return [id_ for (id_,) in cursor.fetchall()]


def staged_files(tasks: Sequence[int], after: int, again_s: float) -> list[StagedFile]:
    """The next files of these tasks that are held until they are staged, in the order of their ids."""
    with connection.cursor() as cursor:
        cursor.execute(_HELD, {"tasks": list(tasks), "after": after, "again": again_s, "most": MOST})
        return [StagedFile(*row) for row in cursor.fetchall()]


def staging_disks() -> dict[str, str]:
    """Tape -> the disk to which its files are staged: the roomiest of its site, else of all, that takes files."""
    rows = StorageEndpoint.objects.filter(state="ACTIVE").order_by("name")
    disks = [e for e in rows if not e.is_tape and access_left(e.status, e.root_state).get("write_wan", "ON") == "ON"]

    def room(disk: StorageEndpoint) -> float:
        return (disk.free_gb or 0.0) + (disk.expired_gb or 0.0)

    def best(tape: StorageEndpoint) -> str:
        near = [disk for disk in disks if disk.site_id == tape.site_id]
        return max(near or disks, key=room).name if disks else ""

    return {tape.name: best(tape) for tape in rows if tape.is_tape}
