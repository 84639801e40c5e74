"""Refining: from the parameters of a task to its rows, or to what is wrong with them, or to what it waits for."""

from workqueues.rules.refine.datasets import unknown_events
from workqueues.rules.refine.plan import check_inputs, input_names, notes, output_names, plan
from workqueues.rules.refine.types import (
    Broken,
    DatasetFacts,
    DatasetPlan,
    OutputTemplatePlan,
    ParentFacts,
    Refined,
    TaskPlan,
    Wait,
)
from workqueues.rules.refine.validate import validate

__all__ = [
    "Broken",
    "DatasetFacts",
    "DatasetPlan",
    "OutputTemplatePlan",
    "ParentFacts",
    "Refined",
    "TaskPlan",
    "Wait",
    "check_inputs",
    "input_names",
    "notes",
    "output_names",
    "plan",
    "unknown_events",
    "validate",
]
