"""What edits of the grid have in common: brokers see another grid, and tasks that wait are judged by it."""

from __future__ import annotations

from typing import Any

from broker_site.foundation.adminpages import AuditedAdmin
from brokerage.ledger.waits import grid_changed


class EditsGrid(AuditedAdmin):
    """A table that the brokerage decides by."""

    def note(self, *edit: Any, **more: Any) -> None:
        """What is audited is a change, by whichever button."""
        grid_changed()
        super().note(*edit, **more)
