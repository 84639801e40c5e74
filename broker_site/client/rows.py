"""Lists of the server, page after page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

from broker_site.client.connection import URL_HINT, Connection
from broker_site.client.errors import Unreachable

Row = Mapping[str, Any]
LARGEST_PAGE = 1000


def rows(connection: Connection, path: str, filters: Mapping[str, Any], limit: int | None = None) -> Iterator[Row]:
    """The rows of a list in its order, `limit` at most (None: all).

    The next page is read when it is wanted. Its cursor alone is taken from the answer: calls go to the server that was named.
    """
    left, cursor = limit, None
    while left is None or left > 0:
        size = LARGEST_PAGE if left is None else min(left, LARGEST_PAGE)
        page = connection.get(path, {**filters, "page_size": size, "cursor": cursor})
        found = listed(page, "results")
        yield from found
        left = left - len(found) if left is not None else None
        cursor = next(iter(parse_qs(urlsplit(page.get("next") or "").query).get("cursor", [])), None)
        if cursor is None:
            return


def listed(page: Any, name: str) -> Sequence[Row]:
    """The rows in an answer. Raises Unreachable where it has none: then no GridBroker answers there."""
    found = page.get(name) if isinstance(page, dict) else None
    if not isinstance(found, list):
        raise Unreachable("This is no answer of GridBroker", f"it holds no {name}", URL_HINT)
    return found
