"""A submitted body: every problem at once, or the task.

Not here: HTTP (`tasks`) and the rules of parameters (`rules.refine`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.db import transaction

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.authentication import roles_of
from broker_site.foundation.access.permissions import may, visible_vos
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.roles import PRODUCTION
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.api.resubmission import namesake, run_again
from workqueues.catalogue import CatalogueUnavailable, catalogue
from workqueues.ledger.output_names import OutputConflict, claim_outputs
from workqueues.ledger.submit import KeyConflict, first_columns, hold_name, submit, submitted_before
from workqueues.models import Task
from workqueues.queries.lost_outputs import check_lost
from workqueues.queries.named_divisions import check_divisions
from workqueues.queries.place_wishes import check_places
from workqueues.queries.tasks import MOST_WRITERS, active_tasks, live_writers, newest_named, parent_of
from workqueues.queries.used_files import check_users
from workqueues.rules.refine import (
    InputWriterFacts,
    Reader,
    TaskDocument,
    TaskFaults,
    Writer,
    bounded,
    check_inputs,
    check_outputs,
    plan,
    plan_step,
    production_wishes,
    read_unfilled,
    wants_step,
)
from workqueues.rules.refine.working_groups import group_wishes
from workqueues.states import TASK

LONGEST_KEY = 255
RULES = "The task breaks rules"


class Submitted(NamedTuple):
    """The task of a submission, whether it is new, and what happens, in a sentence, where it is run again for it."""

    task: Task
    new: bool
    told: str = ""


def submit_task(params: Any, principal: Principal, key: str, *, number: int | None = None) -> Submitted:
    """Register the task that the body describes, or run it again: the task, and what happens. `number`: of one that is not kept.

    Refused: 400 for a body that is no object or a key that is none, 403 without the right in the task's VO, or without the role
    production for what needs it, 422 with every problem, or for a key that was used with another body, 429 while the owner has
    too many active tasks, 503 while the catalogue does not answer.
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
            return Submitted(known, False)
        return _register(params, owner, _checked(params, owner, principal), principal, key, digest, number)
    except KeyConflict:
        reused = Problem("Idempotency-Key", "same_body", "this key was used before with another body")
        raise Refused(422, "Key used before", reused.message, [reused]) from None


def _owner(params: Mapping[str, Any], principal: Principal) -> str:
    """Who owns the task; 403 if the caller may not submit in its VO, or not for somebody else, 422 if that is nobody there."""
    vo = params.get("vo")
    if not isinstance(vo, str) or not vo:
        return principal.name  # the rules say what is wrong with it
    if not may(principal, "task:submit", vo):
        raise Refused(403, "Not permitted", f"{principal.name} may not submit tasks in VO {vo[:64]}.")
    wanted = params.get("userName")
    if not isinstance(wanted, str) or wanted in ("", principal.name):
        return principal.name
    if not may(principal, "task:produce", vo):
        raise _needs_production([problem("userName", "production", "a task of another user")], principal, vo)
    if not roles_of(wanted, vo):
        raise _broken([problem("userName", "user", f"no user {wanted} has a role in VO {vo}")])
    return wanted


def _needs_production(wishes: Sequence[Problem], principal: Principal, vo: str) -> Refused:
    """The refusal of wishes, each the message of a problem, for which the caller lacks the role."""
    lack = f"needs the role {PRODUCTION} in VO {vo[:64]}, which {principal.name} does not have here"
    wrong = [problem(wish.field, wish.rule, f"{wish.message} {lack}") for wish in wishes]
    return Refused(403, "Not permitted", wrong[0].message, wrong)


class Chain(NamedTuple):
    """What a task hangs together with: the parent that it names, what its body says, and who writes its inputs."""

    parent: Task | None
    document: TaskDocument
    writers: Sequence[InputWriterFacts]


def _checked(params: Mapping[str, Any], owner: str, principal: Principal) -> Chain:
    """What the task hangs together with, once nothing is wrong.

    Refused: 403 for what the caller may not ask for, 422 with every problem.
    """
    document = read_unfilled(params)
    vo = document.parameters.vo
    wishes = [*production_wishes(document.parameters), *_group_wishes(vo, document.parameters.workingGroup, owner)]
    if vo and wishes and not may(principal, "task:produce", vo):
        raise _needs_production(wishes, principal, vo)
    parent, wrong = _parent(params, owner)
    facts, group = parent_of(parent), document.parameters.workingGroup
    writers = [w for w in live_writers(vo, owner, group, document.input_names) if parent is None or w.task_id != parent.id]
    try:
        known = catalogue().look_up(_reader(vo, owner, principal), document.input_names)
        owners = catalogue().owners(vo, document.output_names)
    except CatalogueUnavailable as error:
        raise Refused(503, "Catalogue not available", str(error), headers={"Retry-After": "10"}) from error
    writer = Writer(vo, owner, may(principal, "task:produce", vo) and PRODUCTION in roles_of(owner, vo) if owners else False)
    if len(writers) > MOST_WRITERS:
        wrong.append(problem("jobParameters", "range", f"more than {MOST_WRITERS} live tasks write its inputs"))
    problems = bounded(
        [
            *document.problems,
            *wrong,
            *(() if wants_step(params) else check_inputs(document, facts, known, writers)),
            *check_outputs(document, writer, owners),
            *check_places(document),
            *check_divisions(document),
            *(twin.problems if (twin := namesake(params, owner)) else ()),
            *check_users(vo, document.parameters.skipFilesUsedBy),
            *check_lost(vo, document.parameters.oldDatasetName, document.parameters.lostFiles),
        ]
    )
    if not problems:
        refined = (
            plan_step(document, task_id=0)
            if wants_step(params)
            else plan(document, task_id=0, user_name=owner, parent=facts, writers=writers, known=known)
        )
        problems = refined.problems if isinstance(refined, TaskFaults) else ()
    if problems:
        raise _broken(problems)
    return Chain(parent, document, writers)


def _group_wishes(vo: str, group: str, owner: str) -> list[Problem]:
    members = gdpconfig.value("prio_mgr", "WORKING_GROUP_MEMBERS", app="pandaserver", vo=vo) if vo and group else {}
    return list(group_wishes(group, owner, members))


def _reader(vo: str, owner: str, principal: Principal) -> Reader:
    """For whom the task reads; a token that is limited to some VOs does not reach into others by the roles of its user."""
    return Reader(vo, owner, visible_vos(principal, "dataset:read").names if owner == principal.name else None)


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


def _register(
    params: Mapping[str, Any], owner: str, chain: Chain, principal: Principal, key: str, digest: str, number: int | None
) -> Submitted:
    columns = first_columns(params, owner, chain.parent.id if chain.parent else None)
    if number is not None:
        columns["id"] = number
    if principal.limited:
        reach = _reader(params["vo"], owner, principal).vos
        columns["reads_vos"] = None if reach is None else sorted(reach)
    with transaction.atomic():
        _refuse_too_many(params, owner)
        if params.get("uniqueTaskName"):
            hold_name(params["vo"], owner, params["taskName"])
            if key and (first := submitted_before(principal.name, key, digest)) is not None:
                return Submitted(first, False)
            if twin := namesake(params, owner):
                if twin.problems:
                    raise _broken(twin.problems)
                done = run_again(twin, principal, key, digest)
                return Submitted(done.task, False, done.told)
        who, (_, document, writers) = f"user:{principal.name}", chain
        task, new = submit(params, columns, principal.name, who, key, digest, writers=writers)
        if new:
            if not wants_step(params):  # their names may not be known yet
                _claim_outputs(task, document)
            audit(
                "task.submit", principal, f"task {task.id}", vo=task.vo, after={"task_name": task.task_name, "user_name": owner}
            )
        return Submitted(task, new)


def _claim_outputs(task: Task, document: TaskDocument) -> None:
    """Refused(422) where others write to the datasets of the task, or may give its names."""
    try:
        task_parameters = document.parameters
        shared, continues = task_parameters.allowTaskDuplication, task_parameters.oldDatasetName
        claim_outputs(task, document.outputs, shared=shared, continues=continues)
    except OutputConflict as conflict:
        raise _broken([problem(f"{c.output.path}.{c.part}", "unique", c.reason) for c in conflict.claims]) from None


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
