"""A submitted body: every problem at once, or the task.

Not here: HTTP (`tasks`) and the rules of parameters (`rules.refine`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Mapping, Sequence
from typing import Any

from django.db import transaction

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.permissions import may
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.catalogue import CatalogueUnavailable, catalogue
from workqueues.ledger.output_names import OutputsTaken, claim_outputs
from workqueues.ledger.submit import KeyReused, first_columns, hold_name, submit, submitted_before
from workqueues.models import DatasetWriter, Task
from workqueues.queries.tasks import active_tasks, newest_named, parent_of
from workqueues.rules.refine import TaskDocument, TaskFaults, bounded, check_inputs, plan, read_task
from workqueues.states import TASK

LONGEST_KEY = 255
RULES = "The task breaks rules"


def submit_task(params: Any, principal: Principal, key: str) -> tuple[Task, bool]:
    """Register the task that the body describes: the task, and whether it is new.

    Refused: 400 for a body that is no object or a key that is none, 403 without the right in the task's VO or for another's task,
    422 with every problem, or for a key that was used with another body, 429 while the owner has too many active tasks, 503 while
    the catalogue does not answer.
    """
    if not isinstance(params, Mapping):
        raise Refused(400, "Not an object", "The body must be a JSON object of task parameters.")
    if len(key) > LONGEST_KEY or not (key.isascii() and key.isprintable()):
        wrong = f"at most {LONGEST_KEY} printable ASCII characters"
        raise Refused(400, "Key not usable", f"Idempotency-Key: {wrong}.", [Problem("Idempotency-Key", "format", wrong)])
    digest = hashlib.sha256(json.dumps(params, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    owner = _owner(params, principal)
    try:
        if key and (known := submitted_before(principal.name, key, digest)) is not None:
            return known, False
        parent, document = _checked(params, owner)
        return _register(params, owner, parent, document, principal, key, digest)
    except KeyReused:
        reused = Problem("Idempotency-Key", "same_body", "this key was used before with another body")
        raise Refused(422, "Key used before", reused.message, [reused]) from None


def _owner(params: Mapping[str, Any], principal: Principal) -> str:
    """Who owns the task; 403 if the caller may not submit in its VO, or not for somebody else."""
    vo = params.get("vo")
    if not isinstance(vo, str) or not vo:
        return principal.name  # the rules say what is wrong with it
    if not may(principal, "task:submit", vo):
        raise Refused(403, "Not permitted", f"{principal.name} may not submit tasks in VO {vo[:64]}.")
    wanted = params.get("userName")
    if not isinstance(wanted, str) or wanted in ("", principal.name):
        return principal.name
    if not may(principal, "task:command", vo, owner=wanted):
        wrong = problem("userName", "owner", f"only an operator of {vo} submits for others; {principal.name} is none")
        raise Refused(403, "Not permitted", wrong.message, [wrong])
    return wanted


def _checked(params: Mapping[str, Any], owner: str) -> tuple[Task | None, TaskDocument]:
    """The parent of the task, and what its body says, once nothing is wrong; Refused(422) with every problem otherwise."""
    document = read_task(params)
    parent, wrong = _parent(params, owner)
    facts = parent_of(parent)
    try:
        known = catalogue().look_up([*document.input_names, *document.output_names])
    except CatalogueUnavailable as error:
        raise Refused(503, "Catalogue not available", str(error), headers={"Retry-After": "10"}) from error
    found = [*document.problems, *wrong, *check_inputs(document, facts, known), *_strangers(document, known)]
    problems = bounded([*found, *_twin(params, owner)])
    if not problems:
        refined = plan(document, task_id=0, user_name=owner, parent=facts, known=known)
        problems = refined.problems if isinstance(refined, TaskFaults) else ()
    if problems:
        raise _broken(problems)
    return parent, document


def _strangers(document: TaskDocument, known: Container[str]) -> list[Problem]:
    """Outputs into datasets that the catalogue has although no task writes to them: they are somebody else's."""
    names = [name for name in document.output_names if name in known]
    if not names:
        return []
    written = set(DatasetWriter.objects.filter(dataset_name__in=names).values_list("dataset_name", flat=True))
    message = "the catalogue has a dataset {} that no task writes to; name a new one"
    return [
        problem(f"{output.path}.dataset", "unique", message.format(output.dataset))
        for output in document.outputs
        if output.dataset in names and output.dataset not in written
    ]


def _broken(problems: Sequence[Problem]) -> Refused:
    return Refused(422, RULES, "; ".join(f"{p.field}: {p.message}" for p in problems[:3])[:1000], problems)


def _parent(params: Mapping[str, Any], owner: str) -> tuple[Task | None, list[Problem]]:
    """The parent that the body names, and what is wrong with it."""
    name, vo = params.get("parentTaskName"), params.get("vo")
    if not isinstance(name, str) or not name or not isinstance(vo, str):
        return None, []
    parent = newest_named(vo, owner, name)
    if parent is None:
        return None, [problem("parentTaskName", "parent", f"{owner} has no task of this name in VO {vo}")]
    if parent.status in TASK.corrupted:
        return parent, [problem("parentTaskName", "parent", f"the parent, task {parent.id}, is {parent.status}")]
    return parent, []


def _twin(params: Mapping[str, Any], owner: str) -> list[Problem]:
    """uniqueTaskName: the newest task of the same name must not be there (facts on task parameters 2.4).

    One that has ended would be run again with what is new, which is not built yet; a broken one is as none.
    """
    vo, label, name = (params.get(n) for n in ("vo", "prodSourceLabel", "taskName"))
    if params.get("uniqueTaskName") is not True or not all(isinstance(v, str) and v for v in (vo, label, name)):
        return []
    twin = newest_named(str(vo), owner, str(name), prod_source_label=str(label))
    if twin is None or twin.status == "broken":
        return []
    if twin.status in TASK.final or twin.status == "exhausted":
        message = f"task {twin.id} of this name is {twin.status}; running it again with new input is not supported yet"
        return [problem("uniqueTaskName", "not_supported_yet", message)]
    return [problem("uniqueTaskName", "unique", f"task {twin.id} of this name is {twin.status}")]


def _register(
    params: Mapping[str, Any],
    owner: str,
    parent: Task | None,
    document: TaskDocument,
    principal: Principal,
    key: str,
    digest: str,
) -> tuple[Task, bool]:
    columns = first_columns(params, owner, parent.id if parent else None)
    with transaction.atomic():
        _refuse_too_many(params, owner)
        if params.get("uniqueTaskName"):
            hold_name(params["vo"], owner, params["taskName"])
            if key and (first := submitted_before(principal.name, key, digest)) is not None:
                return first, False
            if twin := _twin(params, owner):
                raise _broken(twin)
        task, new = submit(params, columns, principal.name, f"user:{principal.name}", key, digest)
        if new:
            _claim_outputs(task, document)
            audit(
                "task.submit", principal, f"task {task.id}", vo=task.vo, after={"task_name": task.task_name, "user_name": owner}
            )
        return task, new


def _claim_outputs(task: Task, document: TaskDocument) -> None:
    """Refused(422) where others write to the datasets of the task, or may give its names."""
    try:
        claim_outputs(task, document.outputs, shared=document.parameters.allowTaskDuplication)
    except OutputsTaken as taken:
        raise _broken([problem(f"{c.output.path}.{c.part}", "unique", c.reason) for c in taken.claims]) from None


def _refuse_too_many(params: Mapping[str, Any], owner: str) -> None:
    """Refused(429) while the owner has more active tasks than MAX_ACTIVE_TASKS_PER_USER_<label>; 0 is a limit too."""
    vo, label = str(params["vo"]), str(params["prodSourceLabel"])
    name = "MAX_ACTIVE_TASKS_PER_USER_<label>"
    limit: int | None = gdpconfig.value("dbproxy", name, app="pandaserver", vo=vo, label=label)
    if limit is None:
        return
    hold_name(vo, owner, "")  # two submissions at once do not both see the last place free
    if active_tasks(vo, label, owner, limit + 1) > limit:
        message = f"{owner} has more than {limit} active {label} tasks in VO {vo}; submit again when some have ended"
        raise Refused(429, "Too many active tasks", message, [Problem("userName", "active_tasks", message)])
