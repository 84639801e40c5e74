"""Calls that happen at the same moment."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

WAIT_S = 60.0


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Call all at the same moment, each on a connection of its own: what each gave, or its exception."""
    from django.db import connection

    barrier = Barrier(len(calls))

    def one(call: Callable[[], Any]) -> Any:
        try:
            barrier.wait(WAIT_S)
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        ended = [pool.submit(one, call) for call in calls]
        return [each.exception() or each.result() for each in ended]
