"""Acts on many tasks or jobs, carried out one after the other in the background (decision L4).

Each target is done in one transaction with its outcome, so that whoever is killed in between leaves it undone or done, never done
twice. Rights are those that the caller has when it is done, and never more than when it was asked for. Not here: which rows a
filter selects (`api.bulk`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.models import F, QuerySet

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.models import Credential, Role, User
from broker_site.foundation.access.permissions import may
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.kernel.verdict import Problem
from brokerage.ledger.job_commands import kill_listed, retry_job
from brokerage.ledger.task_changes import change_task
from brokerage.models import BulkAction, BulkTarget, Job
from workqueues.ledger.commands import command_task
from workqueues.models import Task
from workqueues.rules.task.changes import CHANGES
from workqueues.rules.task.commands import COMMANDS

logger = logging.getLogger(__name__)

ACTS: Mapping[str, tuple[str, ...]] = {"tasks": ("kill", "retry", "pause", "resume", "priority"), "jobs": ("kill", "retry")}
"""What may be done with many at once."""
MAKE = "bulk:make"
DONE, SKIPPED, NOT_DONE = "done", "skipped", "not_done"
KILLS_AT_ONCE = 100
"""Jobs that one transaction kills; everything else is one target a transaction."""
_LEFT = """
WITH rest AS (
    UPDATE brokerage_bulktarget SET outcome = %s, said = %s
    WHERE id IN (SELECT id FROM brokerage_bulktarget WHERE action_id = %s AND outcome = '' FOR UPDATE SKIP LOCKED)
    RETURNING id
)
UPDATE brokerage_bulkaction SET not_done = not_done + (SELECT count(*) FROM rest) WHERE id = %s
"""
_TARGETS = "INSERT INTO brokerage_bulktarget (action_id, target_id) SELECT %s, unnest(%s::bigint[])"
KILLED = {"cancelled": "it is cancelled", "asked": "it ends with the next sign of life of its pilot"}
KEPT = timedelta(days=90)
"""How long an act and its outcomes are kept."""
LONGEST_SAID = 400
MOST_OPEN = 20
"""Acts of one user that are not done; each may have many thousands of targets."""
TURN_S = 1.0
"""Time that the acts of one user get before those of the next: nobody waits for the end of somebody else's large ones."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants to do, and with which rows."""

    of: str
    act: str
    ids: Sequence[int]
    moment: datetime
    selection: Mapping[str, Any] | None = None
    comment: str = ""
    priority: int | None = None


def start(caller: Principal, wish: Wish) -> BulkAction:
    """Keep an act with its targets, with an audit row; the agent command carries it out. Refused(409): too many are not done."""
    assert caller.user is not None  # noqa: S101 - only users have the right
    rights = {
        "superuser": caller.superuser,
        "roles": {vo: sorted(held) for vo, held in caller.roles.items()},
        "credential": caller.credential,
    }
    with transaction.atomic():
        User.objects.select_for_update().get(pk=caller.user.pk)  # of two at once the second counts the first
        if BulkAction.objects.filter(user=caller.user, ended_at=None).count() >= MOST_OPEN:
            problem = Problem("", "many", f"{MOST_OPEN} of your acts on many are not done: wait until one is")
            raise Refused(409, "Too many at once", f"Nothing was done: {problem.message}.", [problem])
        action = BulkAction.objects.create(
            of=wish.of,
            act=wish.act,
            options={} if wish.priority is None else {"priority": wish.priority},
            comment=wish.comment,
            user=caller.user,
            rights=rights,
            vos=sorted(vo for vo in caller.roles if may(caller, MAKE, vo, caller.name)),
            selection=wish.selection,
            moment=wish.moment,
            n=len(wish.ids),
        )
        with connection.cursor() as cursor:
            cursor.execute(_TARGETS, [action.id, list(wish.ids)])
        told = {"selection": wish.selection, "n": len(wish.ids), **action.options}
        audit(f"{wish.of}.{wish.act}", caller, f"bulk action {action.id}", reason=wish.comment, after=told)
        look_after_commit("command")
    return action


def stop(caller: Principal, action: BulkAction, now: datetime, comment: str = "") -> None:
    """Do nothing more of an act: what is done stays, what is being done ends, the rest is noted as not done. Audited.

    Refused(409) where it is over.
    """
    with transaction.atomic():
        stopped = BulkAction.objects.filter(id=action.id, ended_at=None, stopped_at=None)
        if not stopped.update(stopped_at=now, stopped_by=caller.name):
            problem = Problem("", "over", f"act {action.id} is over or stopped already")
            raise Refused(409, "Over already", f"Nothing was changed: {problem.message}.", [problem])
        audit("bulk.stop", caller, f"bulk action {action.id}", reason=comment, after={"of": action.of, "act": action.act})
    action.refresh_from_db()
    _leave(action, now)
    look_after_commit("command")


def _leave(action: BulkAction, now: datetime) -> None:
    """Note what is left of a stopped act as not done; what somebody is about to do is left to the next run."""
    said = f"the act was stopped by {action.stopped_by}"[:LONGEST_SAID]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LEFT, [NOT_DONE, said, action.id, action.id])
    _close(action, now)


def carry_on(now: datetime, longest_s: float) -> int:
    """Go on with every act that is not done, for so long: how many targets were done with.

    Users take turns; of one user the oldest act goes first.
    """
    _forget_oldest(now)
    n, ends = 0, time.monotonic() + longest_s
    waiting = dict[int, list[BulkAction]]()
    for action in BulkAction.objects.filter(ended_at=None).order_by("id"):
        if action.stopped_at is not None:
            _leave(action, now)
            continue
        waiting.setdefault(action.user_id, []).append(action)
    last = dict[int, int]()
    while waiting and time.monotonic() < ends:
        for user, acts in list(waiting.items()):
            n += _turn(acts, last, now, min(ends, time.monotonic() + TURN_S))
            if not acts:
                del waiting[user]
    return n


def _turn(acts: list[BulkAction], last: dict[int, int], now: datetime, ends: float) -> int:
    """One user's turn: how many targets were done with. Acts are taken out where this run has no more to do.

    last: the last target of each act that this run has looked at.
    """
    n = 0
    while acts:
        action = acts[0]
        caller, before = _caller(action), last.get(action.id, 0)
        while True:
            done, seen = _step(action, caller, before)
            n += done
            if seen == before:
                _close(acts.pop(0), now)
                break
            before = last[action.id] = seen
            if time.monotonic() >= ends:
                return n
    return n


def _forget_oldest(now: datetime) -> None:
    """A few of those that are kept long enough; ids follow time."""
    oldest = list(BulkAction.objects.order_by("id").values_list("id", "at")[:10])
    if gone := [id_ for id_, at in oldest if at < now - KEPT]:
        BulkAction.objects.filter(id__in=gone).delete()


def _step(action: BulkAction, caller: Principal | str, after: int, most: int = 0) -> tuple[int, int]:
    """The next targets beyond one of this run that was left: how many were done with, and the last that was looked at.

    caller: or why nobody may go on. most: jobs to kill in one transaction; 0: as many as usual.
    """
    kills = (action.of, action.act) == ("jobs", "kill")
    targets: list[BulkTarget] = []
    try:
        with transaction.atomic():
            left = _undone(action).filter(id__gt=after, action__stopped_at=None).order_by("id")
            rows = left.select_for_update(skip_locked=True, of=("self",))
            targets = list(rows[: (most or KILLS_AT_ONCE) if kills else 1])
            if isinstance(caller, str):
                _note(targets, lambda _: (SKIPPED, caller))
            elif kills:
                _kill(action, caller, targets)
            else:
                _note(targets, lambda id_: _done(action, caller, id_))
    except OperationalError:
        logger.warning("bulk action %s: a target is locked and is done later", action.id)
        return 0, targets[-1].id if targets else after
    except Exception:
        if not targets:
            raise
        if len(targets) > 1:
            return _step(action, caller, after, most=1)
        logger.exception("bulk action %s: a fault at target %s", action.id, targets[0].target_id)
        with transaction.atomic():
            said = "a fault of the server; its log says more"
            n = _undone(action).filter(id=targets[0].id).update(outcome=SKIPPED, said=said)
            BulkAction.objects.filter(id=action.id).update(skipped=F("skipped") + n)
    return len(targets), targets[-1].id if targets else after


def _kill(action: BulkAction, caller: Principal, targets: Sequence[BulkTarget]) -> None:
    answers = {k.job: k for k in kill_listed(caller, [target.target_id for target in targets], action.comment)}

    def became(id_: int) -> tuple[str, str]:
        answer = answers[id_]
        return (SKIPPED, answer.why) if answer.outcome == "refused" else (DONE, KILLED[answer.outcome])

    _note(targets, became)


def _done(action: BulkAction, caller: Principal, id_: int) -> tuple[str, str]:
    """Do one: outcome, and what happens or why it was skipped. What was refused has changed nothing."""
    try:
        with transaction.atomic():
            return DONE, _ACTS[action.of](action, caller, id_)
    except Refused as refused:
        return SKIPPED, refused.detail


def _task(action: BulkAction, caller: Principal, id_: int) -> str:
    task = Task.objects.filter(pk=id_).first()
    if task is None:
        raise Refused(404, "No such task", "there is no such task any more")
    if action.act != "priority":
        return command_task(caller, task, COMMANDS[action.act], action.comment).told
    asked, problems = CHANGES["priority"].read({"priority": action.options["priority"], "comment": action.comment})
    if problems:
        raise Refused(422, "Not usable", "; ".join(problem.message for problem in problems))
    return change_task(caller, task, CHANGES["priority"], asked)[1].told


def _job(action: BulkAction, caller: Principal, id_: int) -> str:
    """Retry: kills go together."""
    job = Job.objects.filter(pk=id_).first()
    task = Task.objects.filter(pk=job.task_id).first() if job else None
    if job is None or task is None:
        raise Refused(404, "No such job", "there is no such job any more")
    n = retry_job(caller, job, task, action.comment)
    return f"{n} input{'' if n == 1 else 's'} have more tries"


_ACTS: Mapping[str, Callable[[BulkAction, Principal, int], str]] = {"tasks": _task, "jobs": _job}


def _note(targets: Sequence[BulkTarget], do: Callable[[int], tuple[str, str]]) -> None:
    """Do each and note its outcome, with the counts of the act; the row of the act is locked last, by all."""
    if not targets:
        return
    for target in targets:
        target.outcome, said = do(target.target_id)
        target.said = said[:LONGEST_SAID]
    BulkTarget.objects.bulk_update(targets, ["outcome", "said"])
    done = sum(target.outcome == DONE for target in targets)
    counts = {"done": F("done") + done, "skipped": F("skipped") + len(targets) - done}
    BulkAction.objects.filter(id=targets[0].action_id).update(**counts)


def _undone(action: BulkAction) -> QuerySet[BulkTarget]:
    return BulkTarget.objects.filter(action=action, outcome="")


def _close(action: BulkAction, now: datetime) -> None:
    """An act is over when nothing of it is undone, also of what others work on."""
    if not _undone(action).exists():
        BulkAction.objects.filter(id=action.id, ended_at=None).update(ended_at=now)


def _caller(action: BulkAction) -> Principal | str:
    """Who asked, with the rights of now within those of then; why not, where there is nobody or the token was revoked since."""
    user = User.objects.filter(pk=action.user_id, is_active=True).first()
    if user is None:
        return "who asked for it is no active user any more"
    if Credential.objects.filter(pk=action.rights.get("credential") or 0, revoked_at__isnull=False).exists():
        return "the token with which it was asked for is revoked"
    held: dict[str, frozenset[str]] = {}
    for vo, role in Role.objects.filter(user=user).values_list("vo", "role"):
        if role in action.rights["roles"].get(vo, ()):
            held[vo] = held.get(vo, frozenset()) | {role}
    superuser = user.is_superuser and action.rights["superuser"]
    return Principal("user", user.username, user=user, superuser=superuser, roles=held)
