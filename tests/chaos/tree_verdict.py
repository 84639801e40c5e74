"""What a run of the tree comes to: how far it is, and at the end what was lost, done twice or is stuck. SQL of our own."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2

from tests.chaos.checker import MARKER, Database, Findings, check_lines, is_stream
from tests.chaos.tree_broker import Broker

TASKS = "SELECT count(*), count(*) FILTER (WHERE ended_at IS NULL) FROM workqueues_task"
FILES = """
SELECT count(*), count(*) FILTER (WHERE f.status = 'finished'), count(*) FILTER (WHERE f.status = 'failed')
FROM workqueues_file f JOIN workqueues_dataset d ON d.id = f.dataset_id WHERE f.type = 'input' AND d.master_id IS NULL
"""
ELEMENTS = "SELECT status, count(*) FROM workqueues_element GROUP BY 1 ORDER BY 1"
PULLED = "SELECT count(*) FROM workqueues_pulledelement WHERE ended_at IS NULL"
JOBS = "SELECT count(*), count(*) FILTER (WHERE ended_at IS NULL) FROM brokerage_job"
TWICE = {
    "an input was used twice": """
        SELECT file_id::text FROM workqueues_elementinput WHERE status = 'used' GROUP BY 1 HAVING count(*) > 1""",
    "an output was registered twice": """
        SELECT d.name || ' ' || c.lfn FROM workqueues_cataloguefile c JOIN workqueues_cataloguedataset d ON d.id = c.dataset_id
        GROUP BY 1 HAVING count(*) > 1""",
    "a finished input was used by no element": """
        SELECT f.lfn FROM workqueues_file f JOIN workqueues_dataset d ON d.id = f.dataset_id
        WHERE f.type = 'input' AND d.master_id IS NULL AND f.status = 'finished' AND NOT EXISTS (
            SELECT FROM workqueues_elementinput i WHERE i.file_id = f.id AND i.status = 'used')""",
    "an output of the task is not in the catalogue with a copy": """
        SELECT f.lfn FROM workqueues_file f JOIN workqueues_dataset d ON d.id = f.dataset_id
        WHERE f.type = 'output' AND f.status = 'finished' AND NOT EXISTS (
            SELECT FROM workqueues_cataloguedataset e JOIN workqueues_cataloguefile c ON c.dataset_id = e.id
                JOIN workqueues_replica r ON r.file_id = c.id
            WHERE e.vo = d.vo AND e.name = d.dataset_name AND c.lfn = f.lfn)""",
    "a file failed for no reason": """
        SELECT f.lfn FROM workqueues_file f JOIN workqueues_dataset d ON d.id = f.dataset_id
        WHERE f.type = 'input' AND f.status = 'failed' AND NOT EXISTS (
            SELECT FROM workqueues_elementinput i WHERE i.file_id = f.id AND i.status = 'failed')""",
}
"""What the parent may not have, and the names of it."""
REPLICAS = """
SELECT e.path, coalesce(nullif(r.path, ''), c.lfn) FROM workqueues_replica r JOIN workqueues_cataloguefile c ON c.id = r.file_id
    JOIN brokerage_storageendpoint e ON e.name = r.storage
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """How far the parent is."""

    tasks: int
    open_tasks: int
    files: int
    finished: int
    failed: int


def look(parent: Broker) -> Seen | None:
    """How far the parent is; None while its database is not there."""
    try:
        with contextlib.closing(psycopg2.connect(parent.dsn, connect_timeout=2)) as connection, connection.cursor() as cursor:
            cursor.execute(TASKS)
            (tasks,) = cursor.fetchall()
            cursor.execute(FILES)
            (files,) = cursor.fetchall()
            return Seen(*tasks, *files)
    except psycopg2.Error:
        return None


def open_work(brokers: Sequence[Broker]) -> dict[str, int]:
    """What has not ended, by broker and kind."""
    left: dict[str, int] = {}
    for broker in brokers:
        left[f"tasks of {broker.name}"] = broker.rows(TASKS)[0][1]
        left[f"jobs of {broker.name}"] = broker.rows(JOBS)[0][1]
        left[f"elements of {broker.name}"] = broker.rows(PULLED)[0][0]
    return {name: n for name, n in left.items() if n}


def verdict(parent: Broker, children: Sequence[Broker], expected: int, storage: Path) -> dict[str, Any]:
    """The figures and everything that is wrong."""
    seen = look(parent)
    assert seen
    wrong = [f"{what}: {', '.join(str(row[0]) for row in rows[:5])}" for what, sql in TWICE.items() if (rows := parent.rows(sql))]
    findings = Findings()
    with contextlib.closing(Database(parent.dsn)) as database:
        check_lines(database, findings)
    wrong += [f"{v['what']}: {v['n']}" for v in findings.document()["violations"]]
    with ThreadPoolExecutor() as side:
        wrong += [line for lines in side.map(Broker.broken, (parent, *children)) for line in lines]
    known = {Path(root) / path for root, path in parent.rows(REPLICAS)}
    lying = {path for path in storage.rglob("*") if path.is_file() and path.name != MARKER}
    wrong += [f"a registered file is not on storage: {path}" for path in sorted(known - lying)[:5]]
    return {
        "tasks": seen.tasks,
        "elements": dict(parent.rows(ELEMENTS)),
        "files": expected,
        "finished": seen.finished,
        "failed": seen.failed,
        "lost": expected - seen.finished - seen.failed,
        "lines": findings.looked_at["lines"],
        "orphans": len([path for path in lying - known if not is_stream(path, known)]),
        "jobs": {child.name: child.rows(JOBS)[0][0] for child in children},
        "stuck": open_work([parent, *children]),
        "wrong": wrong,
    }
