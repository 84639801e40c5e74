"""Pages of lists: an opaque cursor, at most a thousand rows, no count."""

from __future__ import annotations

from rest_framework.pagination import CursorPagination


class NewestFirst(CursorPagination):
    """Pages by id, newest first."""

    ordering = "-id"
    page_size = 100
    max_page_size = 1000
    page_size_query_param = "page_size"


class OldestFirst(NewestFirst):
    """Pages by id, oldest first."""

    ordering = "id"
