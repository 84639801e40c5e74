"""Rows that another transaction keeps locked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def locked(statement: str) -> Iterator[None]:
    """Another transaction holds rows for as long as the block lasts."""
    holds, over = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(statement)
            holds.set()
            over.wait(60)
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    assert holds.wait(10)
    try:
        yield
    finally:
        over.set()
        thread.join()
