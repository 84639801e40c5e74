"""Kinds of jobs as submission tells them apart (row W4, facts on work queues b7)."""

from __future__ import annotations

FINISHING_KINDS = frozenset({"Merge", "Cleanup", "Harvesting", "LogCollect"})
"""Kinds that end what others began: they go to sites that drain too, and never exceed a threshold."""
