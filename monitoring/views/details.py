"""The home page, and the pages of one task, job and queue. Why a task waits has pages of its own (`monitoring.views.why`)."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponseBase

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.permissions import VoScope, may
from broker_site.foundation.rest import keyset
from brokerage.models.job import TO_REASSIGN
from brokerage.queries.command_lines import command_line
from brokerage.queries.job_standing import job_standing
from brokerage.queries.jobs import inputs_of_job, open_to
from brokerage.queries.task_status import task_status
from brokerage.queries.why_empty import MOST, why_empty_of
from brokerage.rules.explain.task_status_text import headline, reasons
from brokerage.states import JOB
from monitoring.measured import measured
from monitoring.queries.agents import agent_rows
from monitoring.queries.changes import folded, job_moves, task_moves
from monitoring.queries.counts import RECENT, job_counts, longest_waiting, task_counts
from monitoring.queries.database import alias
from monitoring.queries.job import MOST_FILES, find_job, job_outputs, links_of, merges_of, pilot_of, tries_of, used_of
from monitoring.queries.job_samples import samples_of
from monitoring.queries.jobs import job_rows, row_of, visible_jobs
from monitoring.queries.queues import all_queue_rows, find_queue, idle_rows, queue_details, site_limits
from monitoring.queries.series import USUAL_WINDOW, WINDOWS, states_plot
from monitoring.queries.shares import most_deviating
from monitoring.queries.task import find_task, jobs_by_state, task_facts
from monitoring.queries.transfers import files_moving, links_of_site, transfers_of_job
from monitoring.tables.selection import read
from monitoring.views.asks import visible_asks
from monitoring.views.page import page, scope_of, show
from monitoring.views.throughput import choice
from monitoring.wording import WORDS
from workqueues.models import Task
from workqueues.rules.task.change_forms import fields_with_values
from workqueues.rules.task.changes import CHANGES
from workqueues.rules.task.commands import COMMANDS
from workqueues.states import LOG_TYPES, TASK

JOBS_SHOWN = 50


@page("task:read")
def home(request: HttpRequest) -> HttpResponseBase:
    """Tasks and jobs by state, agents, queues, slots idle beside work, shares furthest from their target, and the tasks that have
    waited for longest.
    """
    scope = scope_of(request)
    agents, queues = agent_rows(), all_queue_rows()
    faults: list[str] = []
    window = choice(request, "window", list(WINDOWS), faults, USUAL_WINDOW)
    states, counted_at = states_plot(scope_of(request, "job:read"), window)
    context = {
        "tasks": task_counts(scope),
        "jobs": job_counts(scope),
        "recent": RECENT,
        "agents": agents,
        "unwell": [agent for agent in agents if agent.health != "well"],
        "none_ran": all(agent.health == "never" for agent in agents),
        "queues": queues,
        "queues_online": sum(queue.status == "online" for queue in queues),
        "pilots": sum(queue.pilots for queue in queues),
        "waiting": longest_waiting(scope),
        "idle": idle_rows(scope),
        "deviating": most_deviating(scope_of(request, "grid:read")),
        "states": states if counted_at else None,
        "window": window,
        "windows": list(WINDOWS),
        "faults": faults,
    }
    return show(request, "home.html", "home", context, knows=("window",))


@page("task:read")
def task(request: HttpRequest, task_id: int) -> HttpResponseBase:
    """Progress, datasets, jobs, history and parameters of a task, and the commands that the visitor may give it now."""
    scope = scope_of(request)
    row = visible_task(task_id, scope)
    status = task_status(row, alias())
    jobs = visible_jobs(scope_of(request, "job:read")).filter(task_id=task_id)
    selection = read(request.GET, table=keyset.name_of(jobs.model))
    visitor = authenticate(request)
    shown = keyset.page(jobs, job_rows, JOBS_SHOWN, selection.cursor, narrow=True)
    all_shown = selection.cursor is None and shown.older is None and row.vo in scope_of(request, "job:read")
    context = {
        "task": row,
        "facts": task_facts(row, jobs_by_state(job.status for job in shown.rows) if all_shown else None),
        "headline": headline(status),
        "errors": status.errors,
        "elements": status.elements,
        "merges": status.merges,
        "premerged": request.GET.get("premerged") == "1",
        "throttled": bool(status.throttle),
        "waits": any(reason.tone in ("wait", "bad") for reason in reasons(status)),
        "word": WORDS["task"][row.status],
        "final": row.status in TASK.final,
        "selection": selection,
        "page": shown,
        "moves": folded(task_moves(task_id)),
        "moving": [] if row.status in TASK.final else files_moving(task_id),
        "may_look": row.next_look_at is not None and may(visitor, "task:look", row.vo, row.user_name, row.submitted_by),
        "may_rebroker": may(visitor, "job:rebroker", row.vo),
        "may_kill_jobs": may(visitor, "job:kill", row.vo, row.user_name, row.submitted_by),
        "changes": [
            (change, fields_with_values(change, vars(row)))
            for change in CHANGES.values()
            if change.suits(row.status, row.old_status)
            and f"{change.rule}=" in f"={row.split_rule}"
            and may(visitor, change.right.permission, row.vo, row.user_name, row.submitted_by)
        ],
        "beyond": [
            option.name
            for command in COMMANDS.values()
            for option in command.options
            if option.right and may(visitor, option.right.permission, row.vo, row.user_name, row.submitted_by)
        ],
        "commands": [
            command
            for command in COMMANDS.values()
            if command.suits(row.status, label=row.prod_source_label, quarantined=row.quarantined_at is not None)
            and may(visitor, command.right.permission, row.vo, row.user_name, row.submitted_by)
        ],
    }
    return show(request, "task.html", "tasks", context, knows=("cursor", "limit", "premerged"))


def visible_task(task_id: int, scope: VoScope) -> Task:
    """The task, if the visitor may see it; else 404."""
    row = find_task(task_id, scope)
    if row is None:
        raise Http404(f"There is no task {task_id}, or it belongs to a VO that you cannot look into.")
    return row


@page("job:read")
def job(request: HttpRequest, job_id: int) -> HttpResponseBase:
    """States, files, pilot, needs, result and tries of a job."""
    scope = scope_of(request, "job:read")
    row = find_job(job_id, scope)
    if row is None:
        raise Http404(f"There is no job {job_id}, or it belongs to a VO that you cannot look into.")
    links = links_of(row)
    merges, merged_by = merges_of(job_id, links)
    outputs, result, spec = job_outputs(job_id), getattr(row, "result", None), getattr(row, "spec", None)
    tries = tries_of(links)
    before = next((each.retry_of for each in tries if each.id == job_id), ())
    visitor, owned = authenticate(request), (spec.vo, spec.user_name, vars(row)["submitted_by"]) if spec else ("", None, None)
    context = {
        "job": row,
        "row": row_of(row),
        "spec": spec,
        "parameters": command_line(spec, alias()) if spec else "",
        "result": result,
        "final": row.status in JOB.final,
        "may_rebroker": row.status in JOB.waiting and spec is not None and may(visitor, "job:rebroker", spec.vo),
        "may_kill": row.status not in JOB.final and not row.kill_requested and may(visitor, "job:kill", *owned),
        "may_retry": row.status in JOB.unsuccessful and may(visitor, "job:retry", *owned),
        "moves": job_moves(job_id),
        "transfers": transfers_of_job(job_id) if row.status in JOB.moving else [],
        "inputs": inputs_of_job(job_id, using=alias(), most=MOST_FILES),
        "open_to": open_to(job_id, using=alias()) if row.computing_queue is None else [],
        "outputs": outputs,
        "has_log": (result is not None and result.log_end) or any(o.type in LOG_TYPES and o.copies for o in outputs),
        "standing": job_standing(row, None if scope.everything else scope.names, alias()),
        "pilot": pilot_of(row),
        "tries": tries,
        "used": used_of(row),
        "measured": measured(result.metrics) if result else [],
        "samples": samples_of(row),
        "came_from": [each for each in tries if each.anew and each.id in before],
        "anew_as": [each.id for each in tries if row.sub_status == TO_REASSIGN and job_id in each.retry_of],
        "merges": merges,
        "merged_by": merged_by,
    }
    return show(request, "job.html", "jobs", context)


@page("grid:read")
def queue(request: HttpRequest, name: str) -> HttpResponseBase:
    """What a computing queue is, what is there, and why it gets no work."""
    row = find_queue(name, pilots=True)
    if row is None:
        raise Http404(f"There is no queue {name[:60]}.")
    scope, facts = scope_of(request, "decision:read"), queue_details(row)
    context = {
        "queue": row,
        "facts": facts,
        "idle": next(iter(idle_rows(scope_of(request), row)), None),
        "why": why_empty_of(row, None if scope.everything else sorted(scope.names), alias(), facts.load),
        "most": MOST,
        "asks": visible_asks(request, row),
        "links": links_of_site(row.site_id),
        "limits": site_limits(row.site_id, advertises=vars(row)["advertises"]),
        "may_look": may(authenticate(request), "queue:look"),
        "may_rebroker": may(authenticate(request), "job:rebroker"),
    }
    return show(request, "queue.html", "queues", context)
