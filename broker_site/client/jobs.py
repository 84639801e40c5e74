"""Jobs: list, read, kill, retry, why one waits; with which errors they ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from broker_site.client.connection import Connection
from broker_site.client.rows import Row, listed, rows

WELL = "finished"
"""The end of a job that did its work."""


class Job:
    """One job as the server told it: `row` holds every field of the list, `whole()` the rest."""

    def __init__(self, connection: Connection, row: Row) -> None:
        self._connection, self.row = connection, row

    @property
    def id(self) -> int:
        return int(self.row["id"])

    @property
    def status(self) -> str:
        return str(self.row["status"])

    @property
    def ended(self) -> bool:
        return self.row["ended_at"] is not None

    @property
    def well(self) -> bool:
        return self.status == WELL

    def refresh(self) -> Job:
        """Read it again, whole; itself."""
        self.row = self.whole()
        return self

    def whole(self) -> Row:
        """With description, inputs, outputs, result, history and tries."""
        document: Row = self._connection.get(f"jobs/{self.id}/")
        return document

    def why(self) -> Row:
        """Where it stands among those that wait for a pilot; Refused with 404 where it does not wait."""
        document: Row = self._connection.get(f"jobs/{self.id}/waiting/")
        return document

    def kill(self, comment: str = "") -> Row:
        document: Row = self._connection.post(f"jobs/{self.id}/kill/", {"comment": comment})
        return document

    def retry(self, comment: str = "") -> Row:
        document: Row = self._connection.post(f"jobs/{self.id}/retry/", {"comment": comment})
        return document

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.status}>"


class Jobs:
    """`client.jobs`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self, limit: int | None = 100, **filters: Any) -> Iterator[Job]:
        """Newest first; filters are those of `/api/v1/jobs/`, as `status="failed,cancelled"`, `task=7`. `limit` None: all."""
        return (Job(self._connection, row) for row in rows(self._connection, "jobs/", filters, limit))

    def get(self, job_id: int) -> Job:
        return Job(self._connection, self._connection.get(f"jobs/{int(job_id)}/"))

    def errors(self, window: str | None = None, **filters: Any) -> Row:
        """With which errors jobs ended in a window (`1h`, `24h`, `7d`), each once under `results`, the most frequent first.

        `others`: jobs that ended with rarer ones; filters are those of `/api/v1/errors/`, as `queue="ALPHA"`.
        """
        document: Row = self._connection.get("errors/", {"window": window, **filters})
        return document

    def errors_by_site(self, window: str | None = None, **filters: Any) -> Sequence[Row]:
        """Jobs that ended with each code at each site: `site`, `code`, `jobs`; read from the list of the pages."""
        return listed(self._connection.get("/errors/sites.json", {"window": window, **filters}), "rows")

    def kill(self, job_ids: Sequence[int], comment: str = "") -> Any:
        """Cancel several, 1000 at most: what became of each."""
        return self._connection.post("jobs/kill/", {"jobs": [int(each) for each in job_ids], "comment": comment})
