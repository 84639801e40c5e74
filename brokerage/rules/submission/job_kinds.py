"""Kinds of jobs as submission tells them apart (row W4, decision J8, facts on work queues b7)."""

from __future__ import annotations

from collections.abc import Mapping

from brokerage.rules.facts.job_kind import MERGING_KINDS, JobKind

FINISHING_KINDS = frozenset({"Merge", "Cleanup", "Harvesting", "LogCollect"})
"""Kinds that end what others began: they go to sites that drain too, and never exceed a threshold."""

PROCESSING, MERGE = "Processing", "Merge"
KINDS: Mapping[JobKind, str] = {kind: MERGE if kind in MERGING_KINDS else PROCESSING for kind in JobKind}
"""The kind of each of our jobs: Production of the documents is Processing."""

KIND_PRIORITIES: Mapping[str, int] = {PROCESSING: 0, MERGE: 5}
"""Those of a higher one go first, whatever the priorities of their tasks."""

READING_KINDS = frozenset({MERGE})
"""Those that mostly read and write: the thresholds of I/O slots are theirs."""
