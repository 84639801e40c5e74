"""A submitted body: every problem at once, or the task. Not here: HTTP (`tasks`) and the rules of parameters (`rules.refine`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from broker_site.access.permissions import may
from broker_site.access.principal import Principal
from broker_site.access.problems import Refused
from broker_site.kernel.verdict import Problem
from workqueues.catalogue import CatalogueUnavailable, catalogue
from workqueues.ledger.submit import KeyReused, submit, submitted_before
from workqueues.models import Task
from workqueues.queries.parents import named_parent, parent_of
from workqueues.queries.tasks import active_namesake
from workqueues.rules.refine import check_inputs, input_names, validate

LONGEST_KEY = 255
RULES = "The task breaks rules"


def submit_task(params: Any, principal: Principal, key: str) -> tuple[Task, bool]:
    """Register the task that the body describes: the task, and whether it is new.

    Refused: 400 for a body that is no object or a key that is too long, 403 without the right in the task's VO, 422 with every
    problem, or for a key that was used with another body.
    """
    if not isinstance(params, Mapping):
        raise Refused(400, "Not an object", "The body must be a JSON object of task parameters.")
    if len(key) > LONGEST_KEY:
        raise Refused(400, "Key too long", f"Idempotency-Key may have at most {LONGEST_KEY} characters.")
    digest = hashlib.sha256(json.dumps(params, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    owner = _owner(params, principal)
    try:
        if key and (known := submitted_before(principal.name, key, digest)) is not None:
            return known, False
        parent = _checked(params, owner)
        columns = _columns(params) | {"user_name": owner, "parent_tid": parent.id if parent else None}
        return submit(params, columns, principal.name, f"user:{principal.name}", key, digest)
    except KeyReused:
        wrong = Problem("Idempotency-Key", "same_body", "this key was used before with another body")
        raise Refused(422, "Key used before", wrong.message, [wrong]) from None


def _owner(params: Mapping[str, Any], principal: Principal) -> str:
    """Who owns the task; 403 if the caller may not submit in its VO, or not for somebody else."""
    vo = params.get("vo")
    if not isinstance(vo, str) or not vo:
        return principal.name  # the rules say what is wrong with it
    if not may(principal, "task:submit", vo):
        raise Refused(403, "Not permitted", f"{principal.name} may not submit tasks in VO {vo}.")
    wanted = params.get("userName")
    if isinstance(wanted, str) and wanted and wanted != principal.name:
        if not may(principal, "task:command", vo, owner=wanted):
            raise Refused(403, "Not permitted", f"{principal.name} may not submit tasks of {wanted} in VO {vo}.")
        return wanted
    return principal.name


def _checked(params: Mapping[str, Any], owner: str) -> Task | None:
    """The parent of the task, once nothing is wrong; Refused(422) with every problem otherwise."""
    problems = validate(params)
    parent = None
    name, vo = params.get("parentTaskName"), params.get("vo")
    if isinstance(name, str) and name and isinstance(vo, str):
        parent = named_parent(vo, owner, name)
        if parent is None:
            problems.append(Problem("parentTaskName", "exists", f"{owner} has no task named {name} in VO {vo}"))
    if not problems:
        problems = [*_inputs(params, parent), *_twin(params, owner)]
    if problems:
        raise Refused(422, RULES, "; ".join(f"{p.field}: {p.message}" for p in problems[:3]), problems)
    return parent


def _inputs(params: Mapping[str, Any], parent: Task | None) -> list[Problem]:
    try:
        known = catalogue().look_up(input_names(params))
    except CatalogueUnavailable:
        return []  # refining asks again
    return list(check_inputs(params, parent_of(parent), known))


def _twin(params: Mapping[str, Any], owner: str) -> list[Problem]:
    """A task with uniqueTaskName whose namesake has not ended (facts on task parameters 2.4)."""
    if params.get("uniqueTaskName") is not True:
        return []
    twin = active_namesake(params["vo"], owner, params["taskName"])
    if twin is None:
        return []
    return [Problem("taskName", "unique", f"task {twin} of this name has not ended; uniqueTaskName is set")]


def _columns(params: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of a task before it is refined."""
    priority = params.get("taskPriority") or 0
    current = params.get("currentPriority")
    return {
        "task_name": params["taskName"],
        "vo": params["vo"],
        "prod_source_label": params["prodSourceLabel"],
        "task_type": params.get("taskType") or "anal",
        "processing_type": params.get("processingType") or "",
        "working_group": params.get("workingGroup") or "",
        "task_priority": priority,
        "current_priority": priority if current is None else current,
    }
