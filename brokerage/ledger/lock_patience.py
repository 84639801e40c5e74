"""How long what came together waits for rows that others have locked: only a moment, since all of it is answered together.

Whoever is told of the lock asks again. Not here: how long what came alone waits, which is the limit of its connection.
"""

from __future__ import annotations

import time

from django.db import connection

TOGETHER_S = 0.5
LEAST_S = 0.02
"""What ends of itself in a few milliseconds is waited for also when the time is over."""


class LockPatience:
    """A time that several transactions have in all for waiting."""

    def __init__(self, seconds: float = TOGETHER_S) -> None:
        self.until = time.monotonic() + seconds

    def limit(self) -> None:
        """For the rest of the current transaction each lock is waited for no longer than what is left."""
        left_ms = round(1000 * max(LEAST_S, self.until - time.monotonic()))
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [str(left_ms)])
