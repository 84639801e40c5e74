"""One's own tokens: listed, made with limits and an end, revoked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from broker_site.client.connection import Connection
from broker_site.client.rows import Row, rows

USUAL_DAYS = 90


class Tokens:
    """`client.tokens`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self, limit: int | None = 100, **filters: Any) -> Iterator[Row]:
        """Newest first, without their texts."""
        return rows(self._connection, "tokens/", filters, limit)

    def new(self, vo: str = "", roles: Sequence[str] = (), days: int = USUAL_DAYS, note: str = "") -> Row:
        """Make one, for a VO and some of your roles; `token` is its text, which no other answer has."""
        body = {"vo": vo, "roles": list(roles), "days": days, "note": note}
        document: Row = self._connection.post("tokens/", body)
        return document

    def revoke(self, token_id: int) -> None:
        """Nobody gets in with it any more."""
        self._connection.ask("DELETE", f"tokens/{int(token_id)}/")
