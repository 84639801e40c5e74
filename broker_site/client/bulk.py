"""Acts on many tasks or jobs at once, which the server carries out in the background."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable

from broker_site.client.connection import Connection
from broker_site.client.errors import TimedOut
from broker_site.client.rows import Row, rows

FIRST_LOOK_S, SLOWEST_LOOK_S = 0.5, 5.0


class Bulk:
    """`client.bulk`. A row of an act has `n` targets, of which `done`, `skipped` and `not_done`; `ended_at` once it is over."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def count(self, of: str, act: str, set_priority: int | None = None, **filters: Any) -> Row:
        """How many tasks or jobs (`of`) match now: `n`, the `moment` and the first `ids`. Nothing is begun.

        `set_priority`: the new one, of the act `priority`.
        """
        return self._post({"of": of, "act": act, "filter": filters, "dry_run": True}, set_priority)

    def start(self, of: str, act: str, seen: Row, comment: str = "", set_priority: int | None = None, **filters: Any) -> Row:
        """Begin with what `count` has seen; Refused (409) where more than 5 % more match by now. What came later is let be."""
        body = {"of": of, "act": act, "filter": filters, "count": seen["n"], "moment": seen["moment"], "comment": comment}
        return self._post(body, set_priority)

    def start_with(self, of: str, act: str, ids: Sequence[int], comment: str = "") -> Row:
        """Begin with these."""
        return self._post({"of": of, "act": act, "ids": list(ids), "comment": comment})

    def list(self, limit: int | None = 100) -> Iterator[Row]:
        """Newest first: your own, and those that you may stop."""
        return rows(self._connection, "bulk/", {}, limit)

    def get(self, action_id: int) -> Row:
        document: Row = self._connection.get(f"bulk/{int(action_id)}/")
        return document

    def targets(self, action_id: int, limit: int | None = None) -> Iterator[Row]:
        """What became of each: target_id, outcome, said."""
        return rows(self._connection, f"bulk/{int(action_id)}/targets/", {}, limit)

    def stop(self, action_id: int, comment: str = "") -> Row:
        """Do nothing more of it: what is done stays done."""
        document: Row = self._connection.post(f"bulk/{int(action_id)}/stop/", {"comment": comment})
        return document

    def wait(self, action_id: int, timeout: float | None = None, seen: Callable[[Row], None] | None = None) -> Row:
        """Until it is over; `seen` gets the row after each look. Raises TimedOut after so many seconds; it goes on then."""
        end = None if timeout is None else time.monotonic() + timeout
        pause = FIRST_LOOK_S
        while True:
            row = self.get(action_id)
            if seen is not None:
                seen(row)
            if row["ended_at"] is not None:
                return row
            if end is not None and time.monotonic() >= end:
                through = row["done"] + row["skipped"]
                raise TimedOut(f"Act {action_id} is not over", f"{through} of {row['n']} after {timeout:g} s; it goes on")
            time.sleep(pause if end is None else max(min(pause, end - time.monotonic()), 0))
            pause = min(pause * 1.2, SLOWEST_LOOK_S)

    def _post(self, body: Mapping[str, Any], set_priority: int | None = None) -> Row:
        more = {} if set_priority is None else {"priority": set_priority}
        document: Row = self._connection.post("bulk/", {**body, **more})
        return document
