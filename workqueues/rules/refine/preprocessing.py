"""The preprocessing step of a task: one job before all others, whose result fills in parameters (row J26).

Here: when it is due, what a task that waits for it must be right in, and its rows. Not here: the specification (`prepro_spec`),
what the result does (`filling`). Source: facts on workflows 7.7, on tasks 1.1.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from broker_site.foundation.kernel.verdict import Problem
from workqueues.rules.jobs import split_rule
from workqueues.rules.refine.filling import FIXED, SPEC
from workqueues.rules.refine.plan import notes, planned_columns
from workqueues.rules.refine.types import DatasetPlan, OutputTemplatePlan, TaskDocument, TaskFaults, TaskPlan
from workqueues.rules.refine.validate import read_task
from workqueues.rules.task_parameters import TASK_PARAMETERS

ATTEMPTS = 3
"""Tries of the step's job (facts on workflows 7.7)."""
CORES = 1
LATER_COLUMNS = (
    "user_name", "parent_tid", "req_id", "cpu_time", "cpu_time_unit", "walltime", "walltime_unit", "out_disk_count",
    "out_disk_unit", "io_intensity", "io_intensity_unit", "disk_io", "disk_io_unit", "core_count",
)  # fmt: skip
"""What is known of the task before (owner, parent), and what the jobs of its input need: nothing of that is the step's."""
KEPT_CODES = ("LS", "IP", "IK", "OT", "LI", "NP", "DF")
"""Codes of the split rule that say where the task may run and what becomes of it, not how its input is cut."""
FILLED_IN = ("type", "choice", "format")
"""Rules that a text may break which stands for a value to come."""

_ROOT = re.compile(r"\w+")


def wants_step(params: Mapping[str, Any]) -> bool:
    """Whether a task with these parameters has a preprocessing step."""
    return bool(params.get(SPEC))


def step_due(params: Mapping[str, Any], rule: str) -> bool:
    """Whether the step is still to be done for a task with these parameters and this split rule."""
    return wants_step(params) and split_rule.parse(rule).preprocessing < split_rule.PREPROCESSED


def read_unfilled(params: Mapping[str, object]) -> TaskDocument:
    """What can be read of a task whose step is still to be done, and what is wrong whatever that fills in.

    A parameter that ought to be no text, or another one, and is one, stands for what will be filled in. Where there is any, what
    does not go together is not known yet. Without a step as `read_task`.
    """
    document = read_task(params)
    if not wants_step(params):
        return document
    unfilled = {p.field for p in document.problems if _stands_for_a_value(p, params)}
    return replace(document, problems=tuple(_lasting(document.problems, unfilled)))


def _stands_for_a_value(wrong: Problem, params: Mapping[str, object]) -> bool:
    name = wrong.field
    return wrong.rule in FILLED_IN and isinstance(params.get(name), str) and name not in (SPEC, *FIXED)


def _lasting(problems: tuple[Problem, ...], unfilled: set[str]) -> Iterator[Problem]:
    for wrong in problems:
        root = _ROOT.match(wrong.field)
        name = root[0] if root else ""
        conditional = wrong.rule == "required" and name in TASK_PARAMETERS and not TASK_PARAMETERS[name].required
        open_yet = bool(unfilled) and name != SPEC and (wrong.rule == "contradiction" or conditional)
        if name not in unfilled and not open_yet:
            yield wrong


def plan_step(document: TaskDocument, *, task_id: int, attempt_nr: int = 0) -> TaskPlan | TaskFaults:
    """The rows of the step: a pseudo file, which makes one job of one core with three tries, and its log if the task has logs.

    `document` as `read_unfilled` gives it; `attempt_nr` of the task. The columns are those of the task as far as they say whose
    it is and where it may run, with the transformation of the step; memory is that of one core.
    """
    if document.problems:
        return TaskFaults(document.problems)
    task, spec = document.parameters, document.parameters.preproSpec or {}
    columns = {name: value for name, value in planned_columns(document).items() if name not in LATER_COLUMNS}
    ram = task.ramCount if columns["ram_unit"] != "MB" else -(-task.ramCount // max(task.coreCount, 1))
    columns |= {"trans_path": spec["transPath"], "core_count": CORES, "ram_count": ram}
    columns["split_rule"] = _rule(str(columns["split_rule"]))
    datasets = [DatasetPlan(f"panda.pp.in.{task_id}.{attempt_nr}", "pseudo_input", "PP_IN", state="closed", n_files=1)]
    templates: list[OutputTemplatePlan] = []
    if any(item.type == "log" for item in document.items):
        name = f"panda.pp.log.{task_id}"
        datasets.append(DatasetPlan(name, "log", "PP_LOG", provenance_index=0))
        templates.append(OutputTemplatePlan(1, f"{name}.${{SN}}.log.tgz", "PP_LOG", out_type="log"))
    return TaskPlan(
        columns=columns,
        datasets=tuple(datasets),
        templates=tuple(templates),
        job_parameters=spec.get("jobParameters") or "",
        max_attempt=ATTEMPTS,
        notes=notes(document),
    )


def _rule(text: str) -> str:
    """The split rule of the task while its step is done."""
    codes = [part for part in text.split(",") if part.partition("=")[0] in KEPT_CODES]
    return ",".join([f"{split_rule.STEP}={split_rule.TO_PREPROCESS}", *codes])


def whole_task(planned: TaskPlan) -> TaskPlan:
    """The plan of a task whose step is over: nothing of the step's own columns stays."""
    return replace(planned, columns={"core_count": 1, **planned.columns})
