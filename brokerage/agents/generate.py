"""Agent generate. Takes ready and running tasks with files to use. Leaves jobs activated, or the task pending with the reasons.
Next: pilots."""

from __future__ import annotations

from broker_site.foundation.agency.look import look_in
from broker_site.foundation.agency.run import Run, agent
from brokerage.agents.dataset_jobs import QUEUES_FULL, GenerateRun, jobs_from
from brokerage.agents.decision_cycle import begin
from brokerage.agents.throttling import Throttle
from brokerage.ledger.placement_rounds import note_round
from brokerage.ledger.waits import wait_for_place
from brokerage.models import ComputingQueue
from brokerage.queries.feeds import stale_feeds
from workqueues.agents.each import each
from workqueues.ledger.claims import claim_tasks, release
from workqueues.ledger.picking import give_back_picked
from workqueues.models import Task
from workqueues.queries.tasks import soonest_s
from workqueues.states import TASK

BATCH = 20


@agent("generate")
def generate(run: Run) -> int:
    """Make jobs for every task that has files to use, as the throttler and the room at the queues allow."""
    throttle = Throttle.begin(run, BATCH)
    try:
        tasks = claim_tasks(run.id, run.claim_s, TASK.generating, BATCH, work="unused inputs", order="share", only=throttle.open)
        if not tasks:
            if (soon_s := soonest_s(TASK.generating, QUEUES_FULL.seconds)) is not None:
                look_in(run.agent, soon_s)  # whatever there is to do now was told to tasks that rest for a moment
            return 0
        queue_ids = dict(ComputingQueue.objects.values_list("name", "id"))
        run_state = GenerateRun(run, begin(run, tasks), queue_ids, throttle, stale_feeds(run.now))
        try:
            return each(run, tasks, lambda run, task: generate_for(run, task, run_state))
        finally:
            run_state.cycle.decisions.store()
            if any(run_state.grants.queues()):
                note_round(run_state.last_change)
    finally:
        throttle.end()


def generate_for(run: Run, task: Task, run_state: GenerateRun) -> int:
    """Make jobs for one claimed task and give it back: how many. It waits when there are none from any of its masters."""
    give_back_picked(run.id, task.id)
    jobs, delays = 0, []
    for dataset in run_state.cycle.requests.batch.masters(task):
        if dataset.status != "ready":
            continue
        made, delay = jobs_from(task, dataset, run_state)
        run_state.throttle.made(task, made)
        jobs += made
        delays += [delay] if delay else []
        give_back_picked(run.id, task.id)  # the next master takes from the same secondary datasets
    if jobs or not delays:
        release(task.id, run.id)
    else:
        delay = min(delays, key=lambda delay: delay.seconds)
        world, decision = run_state.cycle.world, delay.decision
        wait_for_place(run, task.id, delay.reason, delay.seconds, world, decision=decision, pending=delay.pending)
    return jobs
