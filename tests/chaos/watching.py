"""Looking at a run from outside while its database may be down: how far it is, and what is wrong already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg2

PROGRESS = """
SELECT (SELECT count(*) FROM workqueues_task), (SELECT count(*) FROM workqueues_task WHERE ended_at IS NULL),
    (SELECT count(*) FROM brokerage_job), (SELECT count(*) FROM brokerage_job WHERE ended_at IS NULL),
    (SELECT count(*) FROM workqueues_file WHERE type = 'input' AND status = 'finished'),
    (SELECT count(*) FROM workqueues_file
        WHERE type = 'input' AND status NOT IN ('finished', 'failed', 'lost', 'missing', 'broken')),
    (SELECT count(*) FROM (SELECT 1 FROM brokerage_jobinput WHERE tracked AND status = 'used'
        GROUP BY file_id HAVING count(*) > 1) AS twice),
    (SELECT count(*) FROM brokerage_transfer WHERE ended_at IS NULL)
        + (SELECT count(*) FROM workqueues_replica WHERE state = 'deleting'),
    (SELECT count(*) FROM brokerage_transfer WHERE status = 'done'),
    (SELECT count(DISTINCT c.job_id) FROM brokerage_jobchange c JOIN brokerage_job j ON j.id = c.job_id
        WHERE j.computing_queue_id IS NOT NULL AND starts_with(c.why, 'made for any of ')),
    (SELECT count(*) FROM brokerage_jobchange WHERE why ~ '^no pilot of .* open to any of '),
    (SELECT count(*) FROM brokerage_job j JOIN brokerage_computingqueue q ON q.id = j.computing_queue_id
        WHERE q.submission <> 'none' AND j.status = 'finished')
"""
HELD = """
SELECT j.id FROM brokerage_job j JOIN brokerage_pilot p ON p.id = j.lease_holder WHERE p.slot = %s ORDER BY j.id DESC LIMIT 1
"""
REPLACED = """
SELECT j.ended_at IS NOT NULL, bool_and(EXISTS (
    SELECT 1 FROM brokerage_jobinput o WHERE o.file_id = i.file_id AND o.job_id <> i.job_id AND o.status = ANY(%s)))
FROM brokerage_job j JOIN brokerage_jobinput i ON i.job_id = j.id WHERE j.id = %s GROUP BY j.id
"""
SERVER_ENDS = "57P"
"""How the codes of errors begin that tell of a server that ends or begins."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Numbers of rows: in all, and of those that are in no final state. `placed`: jobs that were open from the start and have a
    queue; `opened`: those of a queue that were opened to others; `submitted`: those that finished under pilots of their own.
    """

    tasks: int
    open_tasks: int
    jobs: int
    open_jobs: int
    finished_files: int
    open_files: int
    doubled: int
    travelling: int
    brought: int
    placed: int
    opened: int
    submitted: int

    @property
    def open(self) -> int:
        """Tasks, jobs and files that have not ended, copies that are brought, and those that are to be removed."""
        return self.open_tasks + self.open_jobs + self.open_files + self.travelling


class Watch:
    """A connection that is made anew whenever the server went away."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: Any = None

    def progress(self) -> Progress | None:
        """How far the run is; None while the database does not answer."""
        row = self._row(PROGRESS, ())
        return Progress(*row) if row else None

    def held_by(self, slot: str) -> int | None:
        """The job that the pilot of a slot holds."""
        row = self._row(HELD, (slot,))
        return row[0] if row else None

    def over(self, job: int, uses: Sequence[str]) -> tuple[bool, bool]:
        """Whether the job has ended, and whether all its inputs have one of these uses by other jobs."""
        row = self._row(REPLACED, (list(uses), job))
        return (row[0], row[1]) if row else (False, False)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _row(self, sql: str, values: Sequence[object]) -> tuple[Any, ...] | None:
        try:
            if self._connection is None:
                self._connection = psycopg2.connect(self._dsn, connect_timeout=1, application_name="chaos")
                self._connection.autocommit = True
            with self._connection.cursor() as cursor:
                cursor.execute(sql, values)
                row: tuple[Any, ...] | None = cursor.fetchone()
                return row
        except psycopg2.Error as problem:
            if problem.pgcode is not None and not problem.pgcode.startswith(SERVER_ENDS):
                raise
            self.close()  # a killed server shows as errors of several classes, with and without a code
            return None
