"""The activity of a task: production, analysis, or generic, which is neither.

The source label decides, and nothing else: brokerage, throttling, waiting and ending of a task all ask here. Source: facts on
gdpconfig 1.2.4 (throttlers), on timeouts 4.2 (heartbeats), on data movement 3 (managed; user and panda; any other label); seed
001 (the type of a work queue is mapped to prodSourceLabel). The task type says what a submitter may ask for, not who serves it.
"""

from __future__ import annotations

from typing import Literal

Activity = Literal["production", "analysis", "generic"]

ANALYSIS_LABELS = ("user", "panda")
PRODUCTION_LABELS = ("managed", "test")


def activity_of(prod_source_label: str) -> Activity:
    """The activity by the source label of a task; a document that names no label is production's."""
    if prod_source_label in ANALYSIS_LABELS:
        return "analysis"
    return "production" if prod_source_label in PRODUCTION_LABELS or not prod_source_label else "generic"
