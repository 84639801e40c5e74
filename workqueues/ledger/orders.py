"""An order is a command on a task by somebody: his right to it, the verb, the audit. REST, pages and admin give orders here."""

from __future__ import annotations

from django.db import transaction

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.permissions import may
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.kernel.machine import NotAllowed
from workqueues.ledger.commands import DOING, command
from workqueues.models import Task
from workqueues.states import TASK

COMMANDS = tuple(DOING)
SOFT, HARD = "soft finish", "finish"


def give(principal: Principal, task: Task, name: str, comment: str = "", *, soft: bool = True) -> Task:
    """Give the command: the task as it is then. `soft` is for finish: running jobs end by themselves.

    Refused: 403 unless the principal owns the task or is an operator of its VO, 409 in a state that does not take the command.
    """
    check_right(principal, task)
    if name == "finish":
        comment = ": ".join(filter(None, [SOFT if soft else HARD, comment]))
    before = task.status
    try:
        with transaction.atomic():
            task = command(task.id, name, f"user:{principal.name}", comment)
            after = {"status": task.status, "comment": comment}
            audit(f"task.{name}", principal, f"task {task.id}", vo=task.vo, before={"status": before}, after=after)
    except NotAllowed as refused:
        accepting = ", ".join(TASK.accepting(name))
        detail = f"Task {task.id} is {refused.old}; {name} is accepted in {accepting}."
        raise Refused(409, "The state forbids it", detail) from None
    return task


def check_right(principal: Principal, task: Task) -> None:
    """Refused(403) unless the principal may command the task."""
    if not may(principal, "task:command", task.vo, owner=task.user_name):
        who = f"{principal.name} is neither the owner of task {task.id} nor an operator of {task.vo}."
        raise Refused(403, "Not permitted", who)
