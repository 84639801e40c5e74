"""Pages of lists: an opaque cursor, at most a thousand rows, no count (reliability S21)."""

from __future__ import annotations

from typing import TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404
from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

from broker_site.foundation.access.problems import Refused
from broker_site.foundation.kernel.verdict import Problem

LARGEST_ID = (1 << 63) - 1
LONGEST_NAME = 100
Row = TypeVar("Row", bound=Model)
NOWHERE = Cursor(offset=0, reverse=False, position=None)
"""What bytes are decoded to that say nothing at all."""


class NewestFirst(CursorPagination):
    """Pages by id, newest first."""

    ordering = "-id"
    numbered = True
    page_size = 100
    max_page_size = 1000
    page_size_query_param = "page_size"
    page_size_query_description = "rows a page, at most 1000"
    cursor_query_description = "where to go on: the cursor of `next` or `previous`"

    def get_page_size(self, request: Request) -> int | None:
        """The size asked for, 1000 at most; Refused(400) for what is no positive number."""
        size = request.query_params.get(self.page_size_query_param)
        if size is None:
            return self.page_size
        if not (size.isascii() and size.isdigit() and len(size) < 10 and int(size)):
            raise _refused(self.page_size_query_param, "range", "expected a number from 1 to 1000")
        return min(int(size), self.max_page_size)

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
        return 0 <= int(position) <= LARGEST_ID if self.numbered else len(position) <= LONGEST_NAME


class OldestFirst(NewestFirst):
    ordering = "id"


class ByName(NewestFirst):
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
