"""The application's own invariants, looked at while faults happen: they must hold at every moment, not only at the end."""

from __future__ import annotations

import time

from django.db import DatabaseError, InterfaceError, connection

from brokerage.queries.invariants import check

EVERY_S = 6.0


class Invariants:
    """Looks now and then; `broken` has every violation in words."""

    def __init__(self) -> None:
        self.looks = 0
        self.broken: list[str] = []
        self._looked_at = time.monotonic()

    def tend(self) -> None:
        """Look if it is time to."""
        if time.monotonic() > self._looked_at + EVERY_S:
            self.look()

    def look(self) -> None:
        """Look at one snapshot; a database that is down at this moment says nothing."""
        try:
            findings = [f for f in check() if f.violations]
            self.looks += 1
        except (DatabaseError, InterfaceError):
            connection.close()
            return
        finally:
            self._looked_at = time.monotonic()
        self.broken += [f"{f.invariant.name}: {', '.join(f.examples)}" for f in findings]
