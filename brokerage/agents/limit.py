"""Agent limit. Takes what users and groups have running and waiting. Leaves their waiting jobs held back, or handed out again,
and their tasks throttled, or going on, as their caps say. Next: pilots, generate.

While anybody is held back it looks again soon, else a freed slot would idle for a period beside his jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.look import look_later
from broker_site.foundation.agency.run import Run, agent
from brokerage.config_keys import SERVER
from brokerage.ledger.capped_jobs import hold_back, let_go
from brokerage.queries.owner_jobs import OwnedTask, Owner, OwnerJobs, jobs_of_owners, tasks_to_throttle, throttled_tasks
from workqueues.ledger.throttles import Cause, throttle_while
from workqueues.rules.throttle.user_caps import CAUSE, CapVerdict, Used, caps_of, on_jobs, on_tasks

MOST_TASKS, MOST_JOBS = 50, 2000
"""Tasks that are throttled, or go on, in one run, and jobs after which no other owner's are moved; what is left is for the next
run, which comes at once.
"""


@agent("limit")
def limit(run: Run) -> int:
    """Keep users and groups to their caps: how many jobs and tasks changed their state."""
    jobs, tasks = jobs_of_owners(), throttled_tasks()
    moved = limit_jobs(run, jobs) + limit_tasks(run, jobs, tasks)
    if moved or tasks or any(of_owner.held for of_owner in jobs.values()):
        look_later(
            "limit", gdpconfig.value("prio_mgr", "CAP_LOOK", app=SERVER)
        )  # nobody tells of the room that ends of jobs make
    return moved


def limit_jobs(run: Run, owners: Mapping[Owner, OwnerJobs]) -> int:
    """Hold back the waiting jobs of whoever has more running than he may; hand out those of who has not: how many."""
    moved = 0
    for (vo, owner), jobs in owners.items():
        if not jobs.waiting and not jobs.held:
            continue
        config = gdpconfig.component("prio_mgr", vo=vo, app=SERVER)
        verdict = on_jobs(owner, jobs.used, caps_of(owner, config), config)
        if verdict.step == "hold" and jobs.waiting:
            moved += hold_back(jobs.waiting, run.who, verdict.why)
        elif verdict.step == "go" and jobs.held:
            moved += let_go(jobs.held, run.who)
        if moved >= MOST_JOBS:
            break
    return moved


def limit_tasks(run: Run, owners: Mapping[Owner, OwnerJobs], held: Sequence[OwnedTask]) -> int:
    """Throttle the tasks of whoever has about as much as he may; let those that are `held`, of who has not, go on: how many."""
    verdicts = {owner: _on_tasks(owner, owners) for owner in {*owners, *(task.owner for task in held)}}
    over = [task.task_id for task in held if not task.rests or verdicts[task.owner].step == "go"][:MOST_TASKS]
    capped = [owner for owner, verdict in verdicts.items() if verdict.step == "hold"]
    causes = [Cause(task.task_id, CAUSE, verdicts[task.owner].why) for task in tasks_to_throttle(capped, MOST_TASKS)]
    return throttle_while(causes, over, CAUSE, run.who) if causes or over else 0


def _on_tasks(owner: Owner, owners: Mapping[Owner, OwnerJobs]) -> CapVerdict:
    vo, name = owner
    config = gdpconfig.component("prio_mgr", vo=vo, app=SERVER)
    used = owners[owner].used if owner in owners else Used()
    return on_tasks(name, used, caps_of(name, config), config)
