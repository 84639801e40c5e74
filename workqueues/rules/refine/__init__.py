"""Refining: from the parameters of a task to its rows, or to what is wrong with them, or to what it waits for."""

from workqueues.rules.refine.data_rights import DatasetKey, Reader, Writer, check_outputs, dataset_key
from workqueues.rules.refine.plan import check_inputs, ended_writer, notes, plan, planned_columns, planned_parameters
from workqueues.rules.refine.preprocessing import plan_step, read_unfilled, step_due, wants_step
from workqueues.rules.refine.production import production_wishes
from workqueues.rules.refine.types import (
    DatasetFacts,
    DatasetPlan,
    InputWriterFacts,
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
    "DatasetKey",
    "DatasetPlan",
    "InputWriterFacts",
    "OutputName",
    "ParentFacts",
    "Reader",
    "Refined",
    "TaskDocument",
    "TaskFaults",
    "TaskPlan",
    "TaskWait",
    "Writer",
    "bounded",
    "check_inputs",
    "check_outputs",
    "dataset_key",
    "ended_writer",
    "notes",
    "plan",
    "plan_step",
    "planned_columns",
    "planned_parameters",
    "production_wishes",
    "read_task",
    "read_unfilled",
    "step_due",
    "validate",
    "wants_step",
]
