"""Kill and retry of single jobs, in somebody's name and with an audit row.

A job that is killed is cancelled: a try of its inputs, of which the task makes another job while there are tries left. A retry
gives inputs that were given up with a job more tries, while its task lives.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from django.db import transaction

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.permissions import may, visible_vos
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from brokerage.ledger.expiry import kill_jobs
from brokerage.models import Job, JobInput
from brokerage.rules.dispatch.settlement import JobVersion
from brokerage.states import JOB
from workqueues.ledger.task_changes import opened, revive_files
from workqueues.models import Task
from workqueues.rules.task.changes import CHANGES
from workqueues.rules.task.commands import MORE_TRIES

KILL, RETRY = "job:kill", "job:retry"
ATTEMPTS = 3
"""How often a job that moves meanwhile is looked at again."""
MOST_AT_ONCE = 1000
"""Jobs that one call kills."""
MOST_NAMED = 100
"""Jobs that an audit row names."""


class Killed(NamedTuple):
    """What became of one job: `cancelled`, `asked` (its pilot is told with its next sign of life), or `refused`, and why."""

    job: int
    outcome: str
    why: str = ""


def may_command(caller: Principal, permission: str, task: Task) -> bool:
    """Whether the caller may do this with jobs of the task."""
    return may(caller, permission, task.vo, task.user_name, task.submitted_by)


def check_task(caller: Principal, permission: str, task: Task) -> None:
    """Refused(403) unless the caller may do this with jobs of the task."""
    if not may_command(caller, permission, task):
        detail = f"{caller.name} is neither the owner of task {task.id}, nor an operator of {task.vo}."
        raise Refused(403, "Not permitted", detail)


def kill_listed(caller: Principal, ids: Sequence[int], comment: str = "") -> list[Killed]:
    """Kill these jobs, each if it is there, lives and is the caller's to kill: what became of each, in their order."""
    asked = dict.fromkeys(ids)
    visible = Job.objects.filter(visible_vos(caller, "job:read").q("spec__vo"), id__in=asked)
    found = {job.id: job for job in visible}
    tasks = Task.objects.in_bulk({job.task_id for job in found.values()})
    answers = {id_: Killed(id_, "refused", "there is no such job") for id_ in asked if id_ not in found}
    by_task = defaultdict[int, list[int]](list)
    for job in found.values():
        task = tasks.get(job.task_id)
        if task is None or not may_command(caller, KILL, task):
            answers[job.id] = Killed(job.id, "refused", f"{caller.name} may not kill jobs of task {job.task_id}")
        elif job.status in JOB.final:
            answers[job.id] = Killed(job.id, "refused", f"it is {job.status} already")
        else:
            by_task[job.task_id].append(job.id)
    for task_id, listed in sorted(by_task.items()):
        answers |= _kill(caller, tasks[task_id], sorted(listed), comment)
    return [answers[id_] for id_ in asked]


def kill_all_of(caller: Principal, task: Task, comment: str = "") -> list[Killed]:
    """Kill the live jobs of a task, the first MOST_AT_ONCE of those that nobody asked to end yet; the task makes others."""
    check_task(caller, KILL, task)
    live = Job.objects.filter(task_id=task.id, ended_at=None, kill_requested=False).order_by("id").values_list("id", flat=True)
    ids = list(live[:MOST_AT_ONCE])
    return list(_kill(caller, task, ids, comment).values()) if ids else []


def _kill(caller: Principal, task: Task, ids: Sequence[int], comment: str) -> Mapping[int, Killed]:
    who, why = f"user:{caller.name}", f"killed by {caller.name}" + (f": {comment}" if comment else "")
    target = f"job {ids[0]}" if len(ids) == 1 else f"{len(ids)} jobs of task {task.id}"
    audit("job.kill", caller, target, vo=task.vo, reason=comment, after={"task": task.id, "jobs": list(ids[:MOST_NAMED])})
    for _ in range(ATTEMPTS):
        rows = Job.objects.filter(id__in=ids, ended_at=None, kill_requested=False).order_by("id")
        live = [JobVersion(*row) for row in rows.values_list("id", "epoch", "status", "task_id")]
        if not live:
            break
        kill_jobs(live, who, why)
    return {job.id: _became(job) for job in Job.objects.filter(id__in=ids).order_by("id")}


def _became(job: Job) -> Killed:
    if job.status == "cancelled":
        return Killed(job.id, "cancelled")
    if job.status in JOB.final:
        return Killed(job.id, "refused", f"it is {job.status} already")
    return Killed(job.id, "asked") if job.kill_requested else Killed(job.id, "refused", "somebody works on it; ask again")


def told_of_kills(answers: Iterable[Killed]) -> str:
    """What happens now, in a sentence."""
    by_outcome = defaultdict[str, list[Killed]](list)
    for answer in answers:
        by_outcome[answer.outcome].append(answer)
    said = []
    if n := len(by_outcome["cancelled"]):
        said.append(f"{n} job{' is' if n == 1 else 's are'} cancelled; inputs with tries left get other jobs.")
    if n := len(by_outcome["asked"]):
        said.append(
            f"{n} job{' ends' if n == 1 else 's end'} with the next sign of life of {'its pilot' if n == 1 else 'their pilots'}."
        )
    if refused := by_outcome["refused"]:
        said.append(
            f"Job {refused[0].job} is not killed: {refused[0].why}."
            if len(refused) == 1
            else f"{len(refused)} jobs are not killed, the first of them job {refused[0].job}: {refused[0].why}."
        )
    if sum(map(len, by_outcome.values())) >= MOST_AT_ONCE:
        said.append(f"These are the first {MOST_AT_ONCE}; ask again for more.")
    return " ".join(said) or "There is no job to kill."


def retry_job(caller: Principal, job: Job, task: Task, comment: str = "", more: int = MORE_TRIES) -> int:
    """Inputs that were given up with a job get more tries, in a task that lives: how many.

    Refused: 403 without the right, 409 where the task ends or has ended, or none of its inputs was given up.
    """
    check_task(caller, RETRY, task)
    files = list(JobInput.objects.filter(job_id=job.id, tracked=True).values_list("file_id", flat=True))
    row = replace(CHANGES["tries"], name="retry of a job")
    with transaction.atomic():
        locked = opened(task.id, row)
        n = revive_files(locked, more, f"user:{caller.name}", files) if job.status in JOB.final else 0
        if not n:
            why = f"Job {job.id} is {job.status}, and none of its inputs was given up; those with tries left go on by themselves."
            raise Refused(409, "Nothing to retry", why)
        audit(
            "job.retry", caller, f"job {job.id}", vo=task.vo, reason=comment, after={"task": task.id, "files": n, "tries": more}
        )
    return n
