"""Agent watch. Takes production tasks of which jobs fail, tasks whose input is only at busy queues, and jobs of users that wait
in vain. Leaves the tasks throttled, until somebody lets them go on or a queue is free, and the jobs closed, their files ready.
Next: people; generate.
"""

from __future__ import annotations

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from broker_site.foundation.gdpconfig.values import pick
from brokerage.agents.withholding import withhold
from brokerage.config_keys import SERVER
from brokerage.ledger.rebrokering import rebroker
from brokerage.queries.failing_tasks import EndedJobs, ended_jobs
from brokerage.queries.idle_jobs import idle_jobs
from brokerage.queries.movable_jobs import waiting_at
from brokerage.rules.dispatch.idle_jobs import why_anew
from workqueues.ledger.throttles import Cause, throttle_while
from workqueues.models import Task, TaskThrottle
from workqueues.queries.units import Units
from workqueues.rules.jobs.activity import PRODUCTION_LABELS
from workqueues.rules.task.failing import CAUSE, WORK, failing, limited

MOST_TASKS, MOST_JOBS = 50, 2000
"""So many tasks are stopped in a run, and after so many jobs no further task's are closed; the next run comes at once."""


@agent("watch")
def watch(run: Run) -> int:
    """Stop what fails, and move what waits in vain: how many tasks and jobs."""
    return throttle_failing(run) + withhold(run) + rebroker_idle(run)


def throttle_failing(run: Run) -> int:
    """Throttle production tasks of which too many jobs fail: how many."""
    running = Task.objects.filter(status="running", prod_source_label__in=PRODUCTION_LABELS)
    configs = [gdpconfig.component("watchdog", vo=vo) for vo in running.order_by("vo").values_list("vo", flat=True).distinct()]
    least = {
        label: min(pick(config, "MIN_JOBS_TO_PAUSE_<label>", label=label) for config in configs)
        for label in PRODUCTION_LABELS
        if any(limited(label, config) for config in configs)
    }
    causes = []
    if least:
        units = Units.load()
        by_work = [label for label in least if any(limited(label, config, WORK) for config in configs)]
        found = ended_jobs(list(least), min(least.values()), by_work)
        causes = [Cause(task.task_id, CAUSE, why) for task in found if (why := _failing(task, units))][:MOST_TASKS]
    over = list(TaskThrottle.objects.filter(cause=CAUSE).exclude(task__status="throttled").values_list("task_id", flat=True))
    return throttle_while(causes, over, CAUSE, run.who) if causes or over else 0


def _failing(task: EndedJobs, units: Units) -> str:
    share = task.share if units.model(task.vo) == "global" else task.queue
    return failing(task.label, share, task.ended, task.open_files, task.done_files, gdpconfig.component("watchdog", vo=task.vo))


def rebroker_idle(run: Run) -> int:
    """Close jobs of users that wait at a queue where nothing of their task moves, so that they are brokered anew: how many."""
    quiet_s = gdpconfig.value("rebroker", "ANALY_QUIET", app=SERVER)
    reasons: dict[tuple[int | None, int], str] = {}
    for jobs in idle_jobs(quiet_s):
        config = gdpconfig.component("rebroker", vo=jobs.vo, app=SERVER)
        if why := why_anew(jobs.waits_s, jobs.moved, jobs.queue, jobs.status, jobs.group, config):
            reasons[jobs.queue_id, jobs.task_id] = why
    closed = 0
    for at in waiting_at(sorted({queue_id for queue_id, _ in reasons if queue_id is not None})):
        if closed < MOST_JOBS and (at.queue_id, at.task_id) in reasons:
            closed += rebroker([at], run.who, reasons[at.queue_id, at.task_id])
    return closed
