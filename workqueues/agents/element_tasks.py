"""A pulled element becomes a task: its inputs come into the catalogue and it is submitted, in one transaction, by the same rules
as a user's (row X5; decision J2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db import transaction

from broker_site.foundation.access.authentication import roles_of
from broker_site.foundation.access.roles import PRODUCTION
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import OutsideDataError, read
from workqueues.catalogue import catalogue
from workqueues.ledger.output_names import OutputConflict, claim_outputs
from workqueues.ledger.pulled_data import bring_in
from workqueues.ledger.pulled_elements import begin, fail, lock_startable
from workqueues.ledger.submit import first_columns, submit
from workqueues.models import PulledElement, Task
from workqueues.queries.named_divisions import check_divisions
from workqueues.queries.place_wishes import check_places
from workqueues.rules.elements.messages import ElementWork
from workqueues.rules.refine import (
    Reader,
    TaskDocument,
    TaskFaults,
    Writer,
    bounded,
    check_inputs,
    check_outputs,
    plan,
    read_task,
)


class BreaksRules(Exception):
    """An element cannot be a task here; the message is a sentence for the owner of the task at the parent."""


def start_element(id_: int, queues: Sequence[str], storages: Collection[str], who: str) -> Task | None:
    """The task of an element, which goes to these own queues; None: it is one already, not wanted any more, or breaks rules.

    `storages`: those that this grid knows. One that breaks rules is told to the parent as failed.
    """
    try:
        with transaction.atomic():
            element = lock_startable(id_)
            return None if element is None else _submitted(element, queues, storages, who)
    except BreaksRules as error:
        fail(id_, f"it cannot be a task of the child broker: {error}")
        return None


def _submitted(element: PulledElement, queues: Sequence[str], storages: Collection[str], who: str) -> Task:
    work = _work(element)
    if not queues:
        raise BreaksRules("none of the sites where it may run is a site here")
    if not roles_of(work.owner, vo := str(work.parameters.get("vo"))):
        raise BreaksRules(f"no user {work.owner} has a role in VO {vo} here")
    params = {**work.parameters, "includedSite": list(queues), "allowTaskDuplication": True}  # its names never meet others
    params.pop("userName", None)  # whose it is says the parent beside them
    bring_in(work.inputs, storages)
    document = _checked(params, work.owner)
    columns = first_columns(params, work.owner)
    key = f"{element.element_id}/{element.try_nr}/{element.incarnation}"
    task, new = submit(params, columns, who, who, key)
    if new:
        try:
            claim_outputs(task, document.outputs, shared=True)
        except OutputConflict as conflict:
            raise BreaksRules(str(conflict)) from None
    begin(element, task.id)
    return task


def _work(element: PulledElement) -> ElementWork:
    known = {name: value for name, value in element.work.items() if name not in ("paused", "fault")}
    if unreadable := known.get("unreadable"):
        raise BreaksRules(f"what the parent gave cannot be read: {unreadable}")
    try:
        return read(ElementWork, known)
    except OutsideDataError as fault:
        raise BreaksRules(f"what the parent gave cannot be read: {fault}") from None


def _checked(params: Mapping[str, Any], owner: str) -> TaskDocument:
    """What the parameters say. Raises BreaksRules with the first of their problems."""
    document = read_task(params)
    vo = document.parameters.vo
    known = catalogue().look_up(Reader(vo, owner, None), document.input_names)
    owners = catalogue().owners(vo, document.output_names)
    writer = Writer(vo, owner, PRODUCTION in roles_of(owner, vo) if owners else False)
    problems: Sequence[Problem] = bounded(
        [
            *document.problems,
            *check_inputs(document, None, known, ()),
            *check_outputs(document, writer, owners),
            *check_places(document),
            *check_divisions(document),
        ]
    )
    if not problems:
        refined = plan(document, task_id=0, user_name=owner, parent=None, writers=(), known=known)
        problems = refined.problems if isinstance(refined, TaskFaults) else ()
    if problems:
        raise BreaksRules("; ".join(f"{p.field}: {p.message}" for p in problems[:3]))
    return document
