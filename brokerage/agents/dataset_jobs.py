"""The jobs that one run of the agent generate makes of one dataset: input is picked, queues are decided on, jobs are placed and
made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run
from broker_site.foundation.kernel.dice import dice
from brokerage.agents.decision_cycle import DecisionCycle
from brokerage.agents.throttling import Throttle
from brokerage.ledger.generate import give_up, make_jobs, take_input
from brokerage.queries.chunks import CannotAsk
from brokerage.rules.decision.assembly import TaskDecision, queue_table
from brokerage.rules.decision.policy_choice import Unusable
from brokerage.rules.explain.explanation import shortfall
from brokerage.rules.facts.ask import Ask
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.placement.place_jobs import NoPlace, Placement, able_queues, place_jobs
from brokerage.rules.placement.slots import JobsGiven, chosen_queues, limit_of, readable_anywhere, total_room
from brokerage.rules.placement.usable_input import UsableInput
from brokerage.rules.world.stored_snapshot import TaskFacts
from workqueues.models import Dataset, Task
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.jobs.job_parameters import UnresolvedPlaceholder
from workqueues.splitters.check import BadPlan

MOST_JOBS = 10_000
"""Jobs that are made from one dataset at once where no cap binds."""

FULL = "every queue that may take the task has as many waiting jobs as it may"
FULL_WAIT_S = 1.0


class Delay(NamedTuple):
    """Why a task is put aside, and for how many seconds; `pending`: no queue passes at all."""

    reason: str
    seconds: float
    pending: bool = True


QUEUES_FULL = Delay(FULL, FULL_WAIT_S, pending=False)

DatasetJobs = tuple[int, Delay | None]
"""Jobs made from one dataset, and what the task waits for, if it does."""


@dataclass(slots=True)
class GenerateRun:
    """What one run knows: the cycle of decisions, the ids of queues, what of the grid is too old, and the jobs that it gave to
    queues.
    """

    run: Run
    cycle: DecisionCycle
    queue_ids: Mapping[str, int]
    throttle: Throttle
    stale: Sequence[str] = ()
    given: JobsGiven = field(default_factory=JobsGiven)


def jobs_from(task: Task, dataset: Dataset, run_state: GenerateRun) -> DatasetJobs:
    """Make jobs from one dataset, as many as there is room for; none, and no wait, where the throttler has none left."""
    if run_state.throttle.room(task) == 0:
        return 0, None
    if run_state.stale:
        return 0, Delay(run_state.stale[0], gdpconfig.value("feeds", "FEED_PERIOD"))
    try:
        most = _most_jobs(task, run_state)
        return _make(task, dataset, most, run_state) if most else (0, QUEUES_FULL)
    except (Unusable, BadPlan, CannotAsk, UnresolvedPlaceholder, NoPlace) as error:
        return 0, Delay(str(error), gdpconfig.value("jobbroker", "PENDING_GENERIC", vo=task.vo))


def _most_jobs(task: Task, run_state: GenerateRun) -> int:
    """Jobs that the throttler leaves to the task and for which there is room at all queues together; urgent tasks have no cap."""
    requests, room = run_state.cycle.requests, run_state.throttle.room(task)
    policy = requests.config.policy(task.vo, activity_of(task.prod_source_label))
    most = MOST_JOBS if room is None else min(room, MOST_JOBS)
    ask = Ask(
        prod_source_label=task.prod_source_label,
        share=task.gshare or None,
        resource_type=task.resource_type or None,
        priority=task.current_priority,
        processing_type=task.processing_type,
    )
    queues = queue_table(requests.snapshot, TaskFacts(), policy, ask)
    if not len(queues) or ask.urgent:
        return most
    limit = limit_of(policy.activity, task.gshare, gdpconfig.component("jobbroker", vo=task.vo))
    return min(total_room(queues, limit, run_state.given, _share(task, per_share=policy.per_share)), most)


def _share(task: Task, *, per_share: bool) -> str | None:
    """Whose jobs are counted: those of the share of the task where it has one and the policy looks at it, else all."""
    return (task.gshare or None) if per_share else None


def _make(task: Task, dataset: Dataset, most: int, run_state: GenerateRun) -> DatasetJobs:
    """Pick input, decide on queues, place and make the jobs. Raises NoPlace and what deciding and cutting raise."""
    run = run_state.run
    usable = take_input(run.id, task, dataset, most)
    if not len(usable.columns):
        return 0, None
    smallest = usable.smallest(most)
    if not smallest:
        split = usable.cut_anywhere()
        give_up(run.id, task.id, usable, split.dropped, run.who)
        if not split.dropped:
            raise NoPlace(split.reason or "its files make no job")
        return 0, None
    cycle = run_state.cycle
    decided: TaskDecision[Queues] = cycle.decide(cycle.requests.for_queues(task, dataset, usable, smallest))
    if decided.decision.outcome == "pending":
        return 0, Delay(shortfall(decided), decided.decision.wait_s)
    decision_id = cycle.decisions.store()
    placement = _place(task, usable, decided, decision_id, most, run_state)
    run_state.given.add(task.gshare, Counter(job.queue for job in placement.jobs))
    give_up(run.id, task.id, usable, placement.dropped, run.who)
    make_jobs(run.id, task, usable, placement.jobs, decision_id, run.who)
    if placement.jobs or placement.dropped:
        return len(placement.jobs), None
    if placement.reason:
        return 0, Delay(placement.reason, gdpconfig.value("jobbroker", "PENDING_GENERIC", vo=task.vo), pending=False)
    return 0, QUEUES_FULL


def _place(
    task: Task, usable: UsableInput, decided: TaskDecision[Queues], decision_id: int, most: int, run_state: GenerateRun
) -> Placement:
    """Place jobs at the queues that the decision chose. Raises NoPlace, BadPlan."""
    (policy, ask, queues, policy_config), config = decided.inputs, gdpconfig.component("jobbroker", vo=task.vo)
    limit = None if ask.urgent else limit_of(policy.activity, task.gshare, config)
    share = _share(task, per_share=policy.per_share)
    chosen = chosen_queues(decided.decision.chosen, queues, limit, run_state.given, share)
    anywhere = readable_anywhere(ask, decided.task_facts, run_state.cycle.requests.snapshot.storages)
    return place_jobs(
        usable,
        policy.prepare(ask, policy_config),
        queues,
        able_queues(chosen, queues, readable_anywhere=anywhere),
        run_state.queue_ids,
        most,
        config,
        dice(task.id, decision_id),
        policy_config.get("MEMORY_COMPENSATION", 1.0),
    )
