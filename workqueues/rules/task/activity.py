"""Which of the three ways of working a task belongs to: production, analysis, or any other. Source: seed 000; facts on task
parameters 2.
"""

from __future__ import annotations

from typing import Literal

Activity = Literal["production", "analysis", "generic"]

_PRODUCTION = ("managed", "test")
_ANALYSIS = ("user", "panda")


def activity_of(task_type: str, prod_source_label: str) -> Activity:
    """By the task's type where it says prod or anal, else by its source label."""
    if task_type == "prod":
        return "production"
    if task_type == "anal":
        return "analysis"
    if prod_source_label in _PRODUCTION:
        return "production"
    return "analysis" if prod_source_label in _ANALYSIS else "generic"
