"""Pages of lists: an opaque cursor, at most a thousand rows, no count (reliability S21).

Lists by number, newest first, stop at a scan budget and go on from their cursor, as those of the pages do; their cursors are the
same.
"""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404
from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from broker_site.foundation.access.problems import Refused
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.rest import keyset
from broker_site.foundation.rest.keyset import LARGEST_ID

LONGEST_NAME = 100
Row = TypeVar("Row", bound=Model)
_LARGEST_SAID = 999_999_999
NOWHERE = Cursor(offset=0, reverse=False, position=None)
"""What bytes are decoded to that say nothing at all."""


class _Pages(CursorPagination):
    """What the lists share."""

    ordering = "id"
    numbered = True
    page_size = 100
    max_page_size = 1000
    page_size_query_param = "page_size"
    page_size_query_description = "rows a page, at most 1000"
    cursor_query_description = "where to go on: the cursor of `next` or `previous`"

    def get_page_size(self, request: Request) -> int | None:
        """The size asked for, 1000 at most; Refused(400) for what is no positive number."""
        size = request.query_params.get(self.page_size_query_param)
        if not size:
            return self.page_size
        if not (size.isascii() and size.isdigit() and len(size) < 10 and int(size)):  # up to _LARGEST_SAID
            raise _refused(self.page_size_query_param, "range", "expected a number from 1 to 1000")
        return min(int(size), self.max_page_size)

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """With what a size may be: more than the most gives the most."""
        told: list[dict[str, Any]] = super().get_schema_operation_parameters(view)
        for parameter in told:
            if parameter["name"] == self.page_size_query_param:
                parameter["schema"] |= {"minimum": 1, "maximum": _LARGEST_SAID}
        return told

    def decode_cursor(self, request: Request) -> Cursor | None:
        """The cursor of the address; Refused(400) for one that we did not make."""
        if not request.query_params.get(self.cursor_query_param):
            return None
        try:
            cursor = super().decode_cursor(request)
            if cursor is not None and cursor != NOWHERE and (cursor.position is None or self._is_place(str(cursor.position))):
                return cursor
        except (NotFound, ValueError):
            raise _refused(self.cursor_query_param, "format", "not a cursor of this list") from None
        raise _refused(self.cursor_query_param, "format", "not a cursor of this list")

    def _is_place(self, position: str) -> bool:
        """Whether a cursor may stand there; ValueError too says that it may not."""
        return 0 <= int(position) <= LARGEST_ID if self.numbered else len(position) <= LONGEST_NAME and position.isprintable()


class NewestFirst(_Pages):
    """Pages by number, newest first. A view whose table is small, or has an index for its filter, is `narrow`."""

    ordering = "-id"

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """The rows of one page; Refused(400) for a size or a place that there is not."""
        size = self.get_page_size(request) or self.page_size
        cursor, text = None, request.query_params.get(self.cursor_query_param)
        if text:
            try:
                cursor = keyset.Cursor.read(text, keyset.name_of(queryset.model))
            except keyset.BadCursor as bad:
                raise _refused(self.cursor_query_param, bad.rule, str(bad)) from None
        self.shown = self.page_of(queryset, size, cursor, view)
        self.address = request.build_absolute_uri()
        return list(self.shown.rows)

    def page_of(self, queryset: Any, size: int, cursor: keyset.Cursor | None, view: Any) -> keyset.Page[Any]:
        """The rows, and where the pages beside them begin."""
        narrow = bool(getattr(view, "narrow", False))
        return keyset.page(queryset, self.read, size, cursor, narrow=narrow, counted=False)

    def read(self, rows: QuerySet[Any]) -> list[Any]:
        """The rows of a bounded query."""
        return list(rows)

    def get_next_link(self) -> str | None:
        return self._link(self.shown.older)

    def get_previous_link(self) -> str | None:
        return self._link(self.shown.newer)

    def _link(self, cursor: keyset.Cursor | None) -> str | None:
        return None if cursor is None else str(replace_query_param(self.address, self.cursor_query_param, cursor.text()))

    def get_paginated_response(self, data: Any) -> Response:
        return Response(
            {
                "next": self.get_next_link(),
                "previous": self.get_previous_link(),
                "looked_down_to": self.shown.looked_down_to,
                "results": data,
            }
        )

    def get_paginated_response_schema(self, schema: Any) -> Any:
        whole = super().get_paginated_response_schema(schema)
        whole["properties"]["looked_down_to"] = {
            "type": "integer",
            "nullable": True,
            "description": "the number at which looking stopped, as it took long, before a page was full; `next` goes on there",
        }
        return whole


class OldestFirst(_Pages):
    ordering = "id"


class ByName(_Pages):
    ordering = "name"
    numbered = False


def one_of(rows: QuerySet[Row], row_id: int, noun: str) -> Row:
    """The row of this number; 404 where these have none."""
    row = rows.filter(id=row_id).first() if row_id <= LARGEST_ID else None
    if row is None:
        raise Http404(f"There is no such {noun}.")
    return row


def _refused(field: str, rule: str, message: str) -> Refused:
    return Refused(400, "Not valid", f"{field}: {message}", [Problem(field, rule, message)])
