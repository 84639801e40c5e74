"""Agent generate. Takes ready and running tasks with files to use. Leaves jobs activated, or the task pending with the reasons.
Next: pilots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from broker_site.foundation.kernel.dice import dice
from brokerage.agents.decision_cycle import DecisionCycle, begin
from brokerage.agents.job_builder import JobAtQueue, PreparedAsk, make_jobs
from brokerage.agents.throttling import Throttle
from brokerage.queries.chunks import CannotAsk
from brokerage.queries.feeds import stale_feeds
from brokerage.queries.queue_places_sql import QueuePlace, queue_places
from brokerage.queries.usable_input import UsableInput, files_wanted, supply
from brokerage.rules.decision.assembly import TaskDecision, queue_table
from brokerage.rules.decision.declare import Policy
from brokerage.rules.decision.policy_choice import Unusable
from brokerage.rules.explain.explanation import shortfall
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.placement.distribution import Block, Place, block_of, lay_out
from brokerage.rules.placement.job_limits import limits_at, limits_of_task
from brokerage.rules.placement.slots import Given, limit_of, own_names, places_of, readable_anywhere, total_room
from brokerage.rules.world.stored_snapshot import TaskFacts
from workqueues.agents.each import each
from workqueues.ledger.claims import claim_tasks, release
from workqueues.ledger.events import Dropped as DroppedEvents
from workqueues.ledger.events import drop
from workqueues.ledger.holds import hold, stay
from workqueues.ledger.picking import give_back_picked, take_files
from workqueues.ledger.secondaries import load_secondaries
from workqueues.models import Dataset, Task
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.jobs.job_parameters import UnresolvedPlaceholder
from workqueues.splitters.check import BadPlan
from workqueues.splitters.protocol import Dropped, JobLimits
from workqueues.states import TASK

BATCH = 20
MOST_FILES = 50_000
MOST_JOBS = 10_000
"""Jobs that are made from one dataset at once where no cap binds."""

FULL = "every queue that may take the task has as many waiting jobs as it may"
FULL_WAIT_S = 1.0


class Wait(NamedTuple):
    """Why a task is put aside, and for how many seconds; `pending`: no queue passes at all."""

    reason: str
    seconds: float
    pending: bool


class Outcome(NamedTuple):
    """Jobs made from one dataset, and what the task waits for, if it does."""

    made: int
    waits: Wait | None = None


@dataclass(slots=True)
class Round:
    """What one run knows: the cycle, the places of jobs, what of the grid is too old, and the jobs given to queues since."""

    cycle: DecisionCycle
    places: Mapping[str, QueuePlace]
    throttle: Throttle
    stale: Sequence[str] = ()
    given: Given = field(default_factory=Given)


@agent("generate")
def generate(run: Run) -> int:
    """Make jobs for every task that has files to use, as the throttler and the room at the queues allow."""
    throttle = Throttle.begin(run, BATCH)
    try:
        tasks = claim_tasks(run.id, run.claim_s, TASK.generating, BATCH, work="unused inputs", order="share", only=throttle.open)
        if not tasks:
            return 0
        now = Round(begin(run, tasks), queue_places(), throttle, stale_feeds(run.now))
        try:
            return each(run, tasks, lambda run, task: generate_for(run, task, now))
        finally:
            now.cycle.decisions.store()
    finally:
        throttle.end()


def generate_for(run: Run, task: Task, now: Round) -> int:
    """Make jobs for one claimed task and give it back: how many. It waits when there are none from any of its masters."""
    give_back_picked(run.id, task.id)
    made, waits = 0, list[Wait]()
    for dataset in now.cycle.requests.batch.masters(task):
        if dataset.status != "ready":
            continue
        outcome = _generate_from(run, task, dataset, now)
        now.throttle.made(task, outcome.made)
        made += outcome.made
        waits += [outcome.waits] if outcome.waits else []
        give_back_picked(run.id, task.id)  # the next master takes from the same secondary datasets
    if waits and not made:
        _wait(run, task, min(waits, key=lambda wait: wait.seconds))
    else:
        release(task.id, run.id)
    return made


def _wait(run: Run, task: Task, wait: Wait) -> None:
    """Put a task aside: as pending where no queue passes, as it is where the queues are only full."""
    if wait.pending:
        hold(run.id, task.id, wait.reason, wait.seconds, run.who)
    else:
        stay(run.id, task.id, wait.reason, wait.seconds)


def _generate_from(run: Run, task: Task, dataset: Dataset, now: Round) -> Outcome:
    """Make jobs from one dataset, as many as there is room for; none, and no wait, where the throttler has none left."""
    if now.throttle.room(task) == 0:
        return Outcome(0)
    if now.stale:
        return Outcome(0, Wait(now.stale[0], gdpconfig.value("feeds", "FEED_PERIOD"), pending=True))
    config = gdpconfig.component("jobbroker", vo=task.vo)
    try:
        policy = now.cycle.requests.config.policy(task.vo, activity_of(task.prod_source_label))
        most = _most_jobs(task, now, config, policy)
        if most == 0:
            return Outcome(0, Wait(FULL, FULL_WAIT_S, pending=False))
        there = _taken(run, task, dataset, most)
        if not len(there.columns):
            return Outcome(0)
        smallest = there.smallest(most)
        if not smallest:
            return _without_jobs(run, task, there, config["PENDING_GENERIC"])
        decided: TaskDecision[Queues] = now.cycle.decide(now.cycle.requests.for_queues(task, dataset, there, smallest))
        if decided.decision.outcome == "pending":
            return Outcome(0, Wait(shortfall(decided), decided.decision.wait_s, pending=True))
        return _place(run, task, there, decided, now, most)
    except (Unusable, BadPlan, CannotAsk, UnresolvedPlaceholder) as error:
        return Outcome(0, Wait(str(error), config["PENDING_GENERIC"], pending=True))


def _taken(run: Run, task: Task, dataset: Dataset, most: int) -> UsableInput:
    """What is picked for at most so many jobs."""
    dataset.refresh_from_db(fields=["n_files_used", "n_files_to_be_used"])  # a dead run's files, and those of jobs, came back
    files = take_files(run.id, task.id, dataset.id, min(files_wanted(task, dataset, most), MOST_FILES))
    there = supply(task, dataset, files)
    others = load_secondaries(run.id, task, dataset, max(len(there.columns), most)) if files else []
    return replace(there, others=others)


def _without_jobs(run: Run, task: Task, there: UsableInput, wait_s: float) -> Outcome:
    """Not even the smallest job can be made of what was taken: it is given up where the task's rules drop it, else it waits."""
    split = there.cut(there.columns, JobLimits(there.max_files), None, there.secondaries)
    _give_up(run, task, there, split.dropped)
    return Outcome(0, None if split.dropped else Wait(split.reason or "its files make no job", wait_s, pending=True))


def _most_jobs(task: Task, now: Round, config: Config, policy: Policy) -> int:
    """Jobs that the throttler leaves to the task and for which there is room at all queues together; urgent tasks have no cap."""
    room = now.throttle.room(task)
    most = MOST_JOBS if room is None else min(room, MOST_JOBS)
    ask = Ask(
        prod_source_label=task.prod_source_label,
        share=task.gshare or None,
        resource_type=task.resource_type or None,
        priority=task.current_priority,
        processing_type=task.processing_type,
    )
    queues = queue_table(now.cycle.requests.snapshot, TaskFacts(), policy, ask)
    if not len(queues) or ask.urgent:
        return most
    limit = limit_of(policy.activity, task.gshare, config)
    return min(total_room(queues, limit, now.given, _share(task, policy.per_share)), most)


def _share(task: Task, per_share: bool) -> str | None:
    """Whose jobs are counted: those of the share of the task where it has one and the policy looks at it, else all."""
    return (task.gshare or None) if per_share else None


def _place(run: Run, task: Task, there: UsableInput, decided: TaskDecision[Queues], now: Round, most: int) -> Outcome:
    """Cut jobs for the chosen queues and make them."""
    (policy, ask, queues, own), config = decided.inputs, gdpconfig.component("jobbroker", vo=task.vo)
    number = now.cycle.decisions.store()
    places, reason = _places(task, decided, now, policy)
    if reason:
        return Outcome(0, Wait(reason, config["PENDING_GENERIC"], pending=True))
    ask, compensation = policy.prepare(ask, own), own.get("MEMORY_COMPENSATION", 1.0)
    sized = bool(there.rules.files_per_job or there.rules.events_per_job or there.rules.target_events)
    common = limits_of_task(ask, there.max_files)
    of_queues = {p.name: limits_at(ask, queues, queues.index[p.name], common, sized=sized) for p in places}
    limits = {name: there.generation.limits(each) for name, each in of_queues.items()}
    block = block_of(scouts=False, config=config)
    layout = lay_out(there.columns, there.secondaries, there.cut, limits.__getitem__, places, most, block, dice(task.id, number))
    placed = _placed(layout.blocks, queues, now, task.gshare)
    _give_up(run, task, there, layout.dropped)
    make_jobs(run, task, there, placed, PreparedAsk(ask, compensation, queues), number)
    if placed or layout.dropped:
        return Outcome(len(placed))
    return Outcome(0, Wait(layout.reason or FULL, config["PENDING_GENERIC"] if layout.reason else FULL_WAIT_S, pending=False))


def _give_up(run: Run, task: Task, there: UsableInput, dropped: Sequence[Dropped]) -> None:
    """Record what no job will ever take, by the task's own rules, with the reason; whole files have no count of events."""
    found: dict[str, list[DroppedEvents]] = defaultdict(list)
    for position, skip, upto, reason in dropped:
        if there.pieces:
            piece = there.pieces[position]
            events = DroppedEvents(piece.file_id, piece.first + skip, (upto or piece.n_events) - skip)
        else:
            events = DroppedEvents(there.columns.ids[position], 0, 0)
        found[reason].append(events)
    for reason, rows in found.items():
        drop(run.id, task.id, rows, reason, run.who)


def _places(task: Task, decided: TaskDecision[Queues], now: Round, policy: Policy) -> tuple[list[Place], str]:
    """The chosen queues that can take jobs of the task; where there is none, why."""
    _, ask, queues, _ = decided.inputs
    config = gdpconfig.component("jobbroker", vo=task.vo)
    limit = None if ask.urgent else limit_of(policy.activity, task.gshare, config)
    places = places_of(decided.decision.chosen, queues, limit, now.given, _share(task, policy.per_share))
    if not places:
        return [], "none of the chosen queues has storage for outputs"
    anywhere = readable_anywhere(ask, decided.task_facts, now.cycle.requests.snapshot.storages)
    ready = [place for place in places if anywhere or queues.local[queues.index[place.name]]]
    names = ", ".join(place.name for place in places[:3])
    return ready, "" if ready else f"the input is not at the chosen queues ({names}), and nothing moves it there yet"


def _placed(blocks: Sequence[Block], queues: Queues, now: Round, share: str) -> list[JobAtQueue]:
    """The jobs with the queues they go to; the round remembers what each queue was given."""
    placed: list[JobAtQueue] = []
    names = own_names(queues)
    for block in blocks:
        row = queues.index[block.queue]
        place = replace(now.places[names[row]], storage=str(queues.storage[row]))
        placed += [JobAtQueue(place, row, job) for job in block.jobs]
        now.given.add(share, names[row], len(block.jobs))
    return placed
