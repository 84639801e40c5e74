"""Tasks that are sent to another site or nucleus: they are pending until the jobs that are to go have ended, then go on there.

The first half accepts it in the caller's transaction; the agent command carries it out.
"""

from __future__ import annotations

from datetime import datetime

from django.contrib.postgres.functions import TransactionNow
from django.db import transaction
from django.db.models import QuerySet, Value
from django.db.models.functions import Now

from broker_site.foundation.access.problems import Refused
from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.kernel.verdict import Problem
from brokerage.ledger.expiry import kill_jobs
from brokerage.models import Job
from brokerage.queries.place_names import nucleus_fault, site_faults
from brokerage.rules.dispatch.settlement import JobVersion
from brokerage.rules.facts.job_kind import MERGING_KINDS
from brokerage.rules.facts.queue_names import names_in
from brokerage.states import JOB
from workqueues.ledger.commands import DONE
from workqueues.ledger.holds import REST
from workqueues.ledger.moves import move_task
from workqueues.ledger.picked_files import return_picked
from workqueues.ledger.task_changes import Changed, rewritten, unusable
from workqueues.models import Task
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.task.changes import ReassignAsked
from workqueues.states import TASK

_WAITS = ", waiting for "


def reassign(task: Task, asked: ReassignAsked, who: str) -> Changed:
    """A locked task gets another site or nucleus, and waits for the jobs that are to go. Refused: 409 while another command is
    carried out, 422 for a place that is not there.
    """
    if task.command and task.command != "reassign":
        detail = f"Task {task.id} is just being carried on with: {task.command}; ask again in a moment."
        raise Refused(409, "Another command is carried out", detail)
    by_site = "site" in asked.model_fields_set
    if problems := _problems(task, asked, by_site=by_site):
        raise unusable(problems)
    column, name = ("site", ",".join(names_in(asked.site))) if by_site else ("nucleus", asked.nucleus)
    target = f"{column} {name}" if name else f"another {column}"
    why = f"reassigned to {target}" + (f": {asked.comment}" if asked.comment else "")
    n = doomed_jobs(task.id, asked.jobs).count()
    columns = {
        column: name, "command": "reassign", "command_by": who[:128], "command_comment": asked.jobs, "command_time": Now(),
        "error_dialog": _reason(why, n), "next_look_at": Now() + Value(REST), "frozen_time": None,
        "old_status": _next_status(task, by_site=by_site),
    }  # fmt: skip
    before = {column: getattr(task, column)}
    if task.status == "pending":
        rewritten(task, **columns)
    else:
        if task.locked_by:
            return_picked(task.id)
        move_task(task, "pending", who, why, **columns)
    look_after_commit("command")
    jobs = f"once {n} job{' has' if n == 1 else 's have'} ended" if n else "at once"
    step = f"goes on as {columns['old_status']}" if columns["old_status"] != "assigning" else "gets a nucleus"
    return Changed(before, {column: name, "jobs": asked.jobs}, f"Task {task.id} is reassigned to {target}: it {step} {jobs}.")


def _reason(why: str, n: int) -> str:
    """Why the task is pending: what was asked for, and how many jobs it waits for."""
    return why[:450] + (f"{_WAITS}{n} job{'' if n == 1 else 's'}" if n else "")


def _problems(task: Task, asked: ReassignAsked, *, by_site: bool) -> list[Problem]:
    if by_site == ("nucleus" in asked.model_fields_set):
        return [Problem("", "required", "name either a site or a nucleus; empty: it is chosen again")]
    if by_site:
        return [Problem("site", "exists", fault) for fault in site_faults(asked.site)]
    if activity_of(task.prod_source_label) != "production":
        return [Problem("nucleus", "production", "only tasks of production have a nucleus")]
    fault = nucleus_fault(asked.nucleus) if asked.nucleus else ""
    return [Problem("nucleus", "exists", fault)] if fault else []


def _next_status(task: Task, *, by_site: bool) -> str:
    """The state in which it goes on: the one that it had, or the choice of its nucleus once its inputs are read."""
    before = task.old_status if task.status in TASK.interrupted else task.status
    if before in TASK.unplaced:
        return before
    if not by_site:
        return "assigning"
    if before == "exhausted":
        return task.old_status if task.old_status in TASK.outcomes("carry_on") else "ready"
    return "running" if before == "scouted" else before


def doomed_jobs(task_id: int, mode: str) -> QuerySet[Job]:
    """Live jobs of the task that are to go for it: all, those that do not run yet (soft), or none (nokill). Jobs that merge stay
    where the files are, and end with what they merge.
    """
    if mode == "nokill":
        return Job.objects.none()
    jobs = Job.objects.filter(task_id=task_id, ended_at=None).exclude(kind__in=[kind.value for kind in MERGING_KINDS])
    return jobs.exclude(status__in=JOB.spared) if mode == "soft" else jobs


def follow_reassigned(who: str) -> int:
    """End the jobs of tasks that are sent elsewhere, and let those go on that have none left: how many."""
    asked = Task.objects.filter(command="reassign").order_by("command_time", "id")
    return sum(_follow(task, who) for task in list(asked))


def _follow(task: Task, who: str) -> bool:
    rows = doomed_jobs(task.id, task.command_comment).order_by("id").values_list("id", "epoch", "status", "task_id")
    if task.status == "pending" and (doomed := [JobVersion(*row) for row in rows]):
        asker, reason = task.command_by or who, task.error_dialog.rpartition(_WAITS)[0] or task.error_dialog
        why = f"its task is {reason}"
        kill_jobs([job for job in doomed if job.status != "transferring"], asker, why, "closed")
        kill_jobs([job for job in doomed if job.status == "transferring"], asker, why)
        if n := doomed_jobs(task.id, task.command_comment).count():
            waiting = Task.objects.filter(id=task.id, command="reassign", command_time=task.command_time, status="pending")
            waiting.update(error_dialog=_reason(reason, n), next_look_at=Now() + Value(REST))
            return False
    return _go_on(task.id, task.command_time)


def _go_on(task_id: int, given: datetime | None) -> bool:
    with transaction.atomic():
        task = Task.objects.select_for_update(no_key=True).filter(id=task_id, command="reassign", command_time=given).first()
        if task is None:
            return False  # it was commanded otherwise meanwhile
        due = {"next_look_at": TransactionNow()} if task.status == "pending" else {}
        Task.objects.filter(id=task_id).update(**due, **DONE)
        look_after_commit("wake")
        return True
