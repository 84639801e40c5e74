"""From accepted parameters to the rows of a task: columns, split rule, datasets, output templates, command line.

Here: what the task becomes, and what the parent and the catalogue have to say. Not here: the parameters by themselves
(`validate`), reading files into datasets (feed). Source: facts on task parameters 2, 3; facts on workflows 7.5; decision F5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from broker_site.foundation.kernel.verdict import Problem
from workqueues.rules.jobs import split_rule
from workqueues.rules.jobs.lengths import TASK
from workqueues.rules.refine.attributes import shown
from workqueues.rules.refine.contradictions import cuts_events, goal_per_mille
from workqueues.rules.refine.datasets import check_events, dataset_plans, instantiates, offset_of, template_plans
from workqueues.rules.refine.items import command_line, read_items
from workqueues.rules.refine.templates import input_items, output_streams, uses
from workqueues.rules.refine.types import (
    Broken,
    DatasetFacts,
    Item,
    ParentFacts,
    Refined,
    TaskPlan,
    Wait,
)
from workqueues.rules.refine.validate import read_values, validate
from workqueues.rules.task_parameters import TASK_PARAMETERS, problem
from workqueues.states import OUTPUT_TYPES
from workqueues.states import TASK as MACHINE


def input_names(params: Mapping[str, object]) -> tuple[str, ...]:
    """Names of the datasets that the task reads, for looking them up before `plan` or `check_inputs`."""
    items, _ = read_items(params)
    return tuple(dict.fromkeys(name for item in input_items(items) for name in item.names))


def output_names(params: Mapping[str, object]) -> tuple[str, ...]:
    """Names of the datasets that the task writes, logs included; they are known before it is refined.

    Those of concrete datasets are not: a task that instantiates templates has none here.
    """
    values, _ = read_values(params)
    if instantiates(values):
        return ()
    items, _ = read_items(params)
    return tuple(dict.fromkeys(name for item in items if item.type in OUTPUT_TYPES for name in item.names))


def check_inputs(params: Mapping[str, object], parent: ParentFacts | None, known: Mapping[str, DatasetFacts]) -> list[Problem]:
    """What is wrong with the inputs themselves: those that nobody has, and those whose events are not known though they count.

    Nobody: not in the catalogue, no output of the parent, and the task neither waits nor allows it (decision F5).
    """
    values, _ = read_values(params)
    items, _ = read_items(params)
    uncounted = check_events(items, values, known)
    if values.get("waitInput") or values.get("allowEmptyInput"):
        return uncounted
    made = parent.outputs if parent else frozenset()
    return uncounted + [
        problem(f"{item.path}.dataset", "dataset", f"the catalogue has no dataset {name}")
        for item in input_items(items)
        for name in item.names
        if name not in known and name not in made
    ]


def plan(
    params: Mapping[str, object],
    *,
    task_id: int,
    user_name: str,
    parent: ParentFacts | None = None,
    known: Mapping[str, DatasetFacts],
) -> Refined:
    """Refine one task. `known` has the inputs that the catalogue knows; `user_name` owns the task when the parameters do not
    say.

    Wait: the parent still runs (no clock), or an input is not there yet and the task waits for it. Broken: a parameter is
    wrong, the parent is unknown or ended badly, or an input does not exist.
    """
    if problems := validate(params):
        return Broken(tuple(problems))
    values, _ = read_values(params)
    if (stop := _parent(values, parent)) is not None:
        return stop
    if problems := check_inputs(params, parent, known):
        return Broken(tuple(problems))
    if (late := _late(params, values, parent, known)) is not None:
        return late
    rule = _split_rule(read_items(params)[0], values)
    if len(rule) > TASK["split_rule"]:
        return Broken((problem("", "length", f"split rule of {len(rule)} characters, the limit is {TASK['split_rule']}"),))
    return _plan(params, values, rule, _columns(values, task_id, user_name, parent, rule), known)


def _plan(
    params: Mapping[str, object],
    values: Mapping[str, Any],
    rule: str,
    columns: Mapping[str, object],
    known: Mapping[str, DatasetFacts],
) -> TaskPlan:
    items, _ = read_items(params)
    streams = output_streams(items)
    datasets = dataset_plans(items, values, known)
    return TaskPlan(
        columns=columns,
        split_rule=rule,
        datasets=datasets,
        templates=template_plans(items, streams, datasets),
        job_parameters=command_line(items, streams),
        max_attempt=1 if values.get("disableAutoRetry") else values.get("maxAttempt", 3),
        max_failure=values.get("maxFailure"),
        included_sites=values.get("includedSite", ()),
        excluded_sites=values.get("excludedSite", ()),
        notes=notes(params),
    )


def _parent(values: Mapping[str, Any], parent: ParentFacts | None) -> Wait | Broken | None:
    name = values.get("parentTaskName")
    if not name:
        return None
    if parent is None:
        return Broken((problem("parentTaskName", "parent", f"no task of this name: {name}"),))
    if parent.status in MACHINE.corrupted:
        return Broken((problem("parentTaskName", "parent", f"the parent, task {parent.task_id}, is {parent.status}"),))
    if parent.status not in MACHINE.completed:
        return Wait(f"waiting for the parent, task {parent.task_id}, which is {parent.status}", clock=False)
    return None


def _late(
    params: Mapping[str, object], values: Mapping[str, Any], parent: ParentFacts | None, known: Mapping[str, DatasetFacts]
) -> Wait | None:
    made = parent.outputs if parent else frozenset()
    missing = [name for name in input_names(params) if name not in known and name not in made]
    if missing and values.get("waitInput"):
        return Wait(f"waiting for the input {', '.join(missing[:3])}", clock=True)
    return None


def _split_rule(items: Sequence[Item], values: Mapping[str, Any]) -> str:
    """Codes of what the task sets; nEventsPerJob of whole input files becomes files a job."""
    codes: dict[str, int | str] = {}
    for name, parameter in TASK_PARAMETERS.items():
        if parameter.code and parameter.supported and parameter.code not in ("LS", "US") and values.get(name):
            codes[parameter.code] = int(values[name])
    per_job, per_file = values.get("nEventsPerJob"), values.get("nEventsPerInputFile")
    if per_job and per_file and not values.get("noInput") and not cuts_events(values):
        codes["NF"] = min(per_job // per_file, values.get("nFilesPerJob", per_job))
        del codes["NE"]
    codes |= _worded(values)
    if values.get("useFileAsSourceLFN"):
        codes["GB"] = 1  # the feeder makes a boundary of each name
    if fields := values.get("addNthFieldToLFN"):
        codes["AN"] = ",".join(map(str, fields))
    if sites := bool(values.get("includedSite")) + 2 * bool(values.get("excludedSite")):
        codes["LS"] = sites
    if any(uses(item.value, "RNDMSEED") for item in items):
        codes["RS"] = offset_of(items, "RNDMSEED")
    if first := offset_of(items, "FIRSTEVENT"):
        codes["FT"] = first
    codes["US"] = 1
    return split_rule.written(codes)


def _worded(values: Mapping[str, Any]) -> dict[str, int]:
    """Codes of parameters whose values are words (facts on task parameters 3.2)."""
    codes = {}
    if word := values.get("allowInputLAN"):
        codes["IL"] = {"use": 1, "only": 2}[word]
    kind, _, stack = (values.get("ipConnectivity") or "").partition("#")
    if kind:
        codes["IP"] = {"full": 1, "http": 2}[kind]
    if stack:
        codes["IK"] = int(stack.removeprefix("IPv"))
    return codes


def _columns(values: Mapping[str, Any], task_id: int, user_name: str, parent: ParentFacts | None, rule: str) -> dict[str, object]:
    columns: dict[str, object] = {
        p.column: values[name] for name, p in TASK_PARAMETERS.items() if p.column and p.supported and name in values
    }
    columns["task_name"] = values["taskName"]
    columns["user_name"] = values.get("userName") or user_name
    columns["task_type"] = values.get("taskType") or "anal"
    columns["task_priority"] = values.get("taskPriority", 0)
    columns["current_priority"] = values.get("currentPriority", columns["task_priority"])
    columns["core_count"] = values.get("coreCount", 1)
    columns["ram_count"] = values.get("ramCount", 0)
    columns["ram_unit"] = values.get("ramUnit") or values.get("ramCountUnit") or "MB"
    columns["base_ram_count"] = values.get("baseRamCount", 0)
    columns["cpu_efficiency"] = values.get("cpuEfficiency", 90)
    columns["base_walltime"] = values.get("baseWalltime", 600)
    columns["req_id"] = values.get("reqID", task_id)
    columns["parent_tid"] = parent.task_id if parent and values.get("parentTaskName") else task_id
    columns["goal"] = goal_per_mille(values)
    columns["split_rule"] = rule
    if isinstance(values.get("architecture"), Mapping):
        columns["architecture"] = json.dumps(values["architecture"])
    return columns


def notes(params: Mapping[str, object]) -> tuple[Problem, ...]:
    """What the submitter should know of accepted parameters: wishes that are kept but have no effect yet."""
    values, _ = read_values(params)
    told = [problem(name, "note", p.note) for name, p in TASK_PARAMETERS.items() if p.note and p.supported and values.get(name)]
    if not values.get("skipScout"):
        told.append(problem("", "note", "scouts are not built yet (row J20), so every task runs without"))
    told += [
        problem(f"{item.path}.attributes", "note", f"{shown(word)}: a hint without effect yet (row J17)")
        for item in input_items(read_items(params)[0])
        for word in item.attributes.split(",")
        if word in ("manytime", "cvmfs")
    ]
    if values.get("disableAutoRetry") and values.get("maxAttempt", 1) > 1:
        told.append(problem("maxAttempt", "note", "disableAutoRetry is set: each file is tried once"))
    return tuple(told)
