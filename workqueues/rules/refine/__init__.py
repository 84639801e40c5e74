"""Refining: from the parameters of a task to its rows, or to what is wrong with them, or to what it waits for."""

from workqueues.rules.refine.plan import check_inputs, notes, plan
from workqueues.rules.refine.types import (
    DatasetFacts,
    DatasetPlan,
    OutputName,
    ParentFacts,
    Refined,
    TaskDocument,
    TaskFaults,
    TaskPlan,
    TaskWait,
)
from workqueues.rules.refine.validate import bounded, read_task, validate

__all__ = [
    "DatasetFacts",
    "DatasetPlan",
    "OutputName",
    "ParentFacts",
    "Refined",
    "TaskDocument",
    "TaskFaults",
    "TaskPlan",
    "TaskWait",
    "bounded",
    "check_inputs",
    "notes",
    "plan",
    "read_task",
    "validate",
]
