"""Queues, shares and datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from broker_site.client.connection import Connection, segment
from broker_site.client.rows import Row, listed, rows


class Queues:
    """`client.queues`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self, limit: int | None = None, **filters: Any) -> Iterator[Row]:
        """By name, each with its jobs by state; filters are those of `/api/v1/queues/`, as `site="CERN*"`."""
        return rows(self._connection, "queues/", filters, limit)

    def get(self, name: str) -> Row:
        document: Row = self._connection.get(f"queues/{segment(name)}/")
        return document

    def why(self, name: str) -> Row:
        """Why it gets the work that it gets: verdict, and a tally by criterion."""
        document: Row = self._connection.get(f"queues/{segment(name)}/why-empty/")
        return document

    def override(self, name: str, attributes: Mapping[str, str | None], reason: str, until: str | None = None) -> Sequence[Row]:
        """Set attributes by hand, as `{"status": "offline"}`, over what the document says; None takes one away. All that hold.

        `until`: when those that are set end by themselves, as `2026-12-01T12:00:00Z`; None: when they are taken away.
        """
        body = {"attributes": dict(attributes), "reason": reason, "until": until}
        return listed(self._connection.post(f"queues/{segment(name)}/overrides/", body), "results")

    def overrides(self, name: str) -> Sequence[Row]:
        """Attributes that were set by hand, with what the document says beneath."""
        return listed(self._connection.get(f"queues/{segment(name)}/overrides/"), "results")

    def asks(self, name: str) -> Row:
        """What the last asks of pilots got."""
        document: Row = self._connection.get(f"queues/{segment(name)}/asks/")
        return document


class Shares:
    """`client.shares`: read from the list of the pages, which takes a token too."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> Sequence[Row]:
        """Shares and work queues by VO with target, use and turn, parents before what is below them."""
        return listed(self._connection.get("/shares.json"), "rows")

    def rows(self) -> Sequence[Row]:
        """Shares with the columns that change sets steer, and who wrote them last."""
        return listed(self._connection.get("shares/"), "results")


class Datasets:
    """`client.datasets`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self, limit: int | None = 100, **filters: Any) -> Iterator[Row]:
        """Newest first; filters are those of `/api/v1/datasets/`, as `task=7`, `dataset_name="demo.*"`."""
        return rows(self._connection, "datasets/", filters, limit)

    def get(self, dataset_id: int) -> Row:
        """One, with every counter."""
        document: Row = self._connection.get(f"datasets/{int(dataset_id)}/")
        return document
