"""Agent generate. Takes ready and running tasks with files to use. Leaves jobs activated, or the task pending with the reasons.
Next: pilots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from broker_site import gdpconfig
from broker_site.agency.run import Run, agent
from broker_site.kernel.dice import dice
from brokerage.agents.deciding import Cycle, Decided, begin
from brokerage.agents.making import Placed, make_jobs
from brokerage.queries.asks import chunk_of, limits_of, split
from brokerage.queries.chunks import CannotAsk
from brokerage.queries.feeds import stale_feeds
from brokerage.queries.places import QueuePlace, queue_places
from brokerage.rules.ask import Ask
from brokerage.rules.declare import Config, Policy
from brokerage.rules.placement import block_of, spread_idle_first
from brokerage.rules.policy_choice import NoPolicy
from brokerage.rules.slots import Given, limit_of, own_names, places_of, total_room
from brokerage.rules.snapshot import Queues
from workqueues.agents.each import each
from workqueues.ledger.claims import claim_tasks, release
from workqueues.ledger.holds import hold, stay
from workqueues.ledger.picking import give_back_picked, take_files
from workqueues.models import Dataset, File, Task
from workqueues.rules.split_rule import parse
from workqueues.splitters.protocol import JobPlan

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


class Taken(NamedTuple):
    """Files picked from a master dataset, and the jobs into which they are cut."""

    files: Sequence[File]
    jobs: Sequence[JobPlan]


@dataclass(slots=True)
class Round:
    """What one run knows: the cycle, the places of jobs, what of the grid is too old, and the jobs given to queues since."""

    cycle: Cycle
    places: Mapping[str, QueuePlace]
    stale: Sequence[str] = ()
    given: Given = field(default_factory=Given)


@agent("generate")
def generate(run: Run) -> int:
    """Make jobs for every task that has files to use and for which there is room."""
    tasks = claim_tasks(run.id, run.claim_s, ["ready", "running"], BATCH, work="unused inputs", order="share")
    if not tasks:
        return 0
    now = Round(begin(run, tasks), queue_places(), stale_feeds(run.now))
    try:
        return each(run, tasks, lambda run, task: generate_for(run, task, now))
    finally:
        now.cycle.store()


def generate_for(run: Run, task: Task, now: Round) -> int:
    """Make jobs for one claimed task and give it back: how many."""
    give_back_picked(run.id, task.id)
    made = 0
    for dataset in now.cycle.batch.masters(task):
        if dataset.status != "ready":
            continue
        outcome = _generate_from(run, task, dataset, now)
        made += outcome.made
        if outcome.waits is not None:
            give_back_picked(run.id, task.id)
            _wait(run, task, outcome.waits)
            return made
    give_back_picked(run.id, task.id)
    release(task.id, run.id)
    return made


def _wait(run: Run, task: Task, wait: Wait) -> None:
    """Put a task aside: as pending where no queue passes, as it is where the queues are only full."""
    if wait.pending:
        hold(run.id, task.id, wait.reason, wait.seconds, run.who)
    else:
        stay(run.id, task.id, wait.reason, wait.seconds)


def _generate_from(run: Run, task: Task, dataset: Dataset, now: Round) -> Outcome:
    """Make jobs from one dataset, as many as there is room for."""
    if now.stale:
        return Outcome(0, Wait(now.stale[0], gdpconfig.value("feeds", "FEED_PERIOD"), pending=True))
    config = gdpconfig.component("jobbroker", vo=task.vo)
    try:
        policy = now.cycle.policy(task)
        most = _most_jobs(task, now, config, policy)
        if most == 0:
            return Outcome(0, Wait(FULL, FULL_WAIT_S, pending=False))
        chunk = _taken(run, task, dataset, most)
        if not chunk.jobs:
            return Outcome(0)
        inputs = now.cycle.batch.taken(dataset, chunk.files)
        own = now.cycle.batch.own(task, inputs, now.cycle.world.storages, chunk.files)
    except (NoPolicy, CannotAsk) as error:
        return Outcome(0, Wait(str(error), config["PENDING_GENERIC"], pending=True))
    ask = now.cycle.ask(task, chunk_of(inputs, chunk.jobs, chunk.files))
    decided = now.cycle.decide_queues(policy, ask, own, f"{task.id}.{task.epoch}")
    if decided.decision.outcome == "pending":
        return Outcome(0, Wait(_verdict(decided), decided.decision.wait_s, pending=True))
    return _place(run, task, dataset, chunk, decided, now, config)


def _taken(run: Run, task: Task, dataset: Dataset, most: int) -> Taken:
    """Files picked for at most so many jobs, and these jobs."""
    rules, limits = parse(task.split_rule), limits_of(task)
    per_job = rules.files_per_job or rules.max_files_per_job or limits.max_files
    files = take_files(run.id, task.id, dataset.id, min(most * per_job, MOST_FILES))
    return Taken(files, split(dataset, files, rules, limits, most))


def _most_jobs(task: Task, now: Round, config: Config, policy: Policy) -> int:
    """Jobs for which there is room at all queues together; urgent tasks have no cap."""
    ask = Ask(
        share=task.gshare or None,
        resource_type=task.resource_type or None,
        priority=task.current_priority,
        processing_type=task.processing_type,
    )
    queues = now.cycle.world_for(task.prod_source_label).queues(ask, per_share=policy.per_share)
    if not len(queues) or ask.urgent:
        return MOST_JOBS
    limit = limit_of(policy.activity, task.gshare, config)
    return min(total_room(queues, limit, now.given, _share(task, policy.per_share)), MOST_JOBS)


def _share(task: Task, per_share: bool) -> str | None:
    """Whose jobs are counted: those of the share of the task where it has one and the policy looks at it, else all."""
    return (task.gshare or None) if per_share else None


def _place(run: Run, task: Task, dataset: Dataset, chunk: Taken, decided: Decided[Queues], now: Round, config: Config) -> Outcome:
    """Lay the jobs out over the chosen queues and make them."""
    queues, wait_s = decided.columns, config["PENDING_GENERIC"]
    number = now.cycle.store()
    policy = now.cycle.policy(task)
    share, own = _share(task, policy.per_share), now.cycle.config(policy, task.vo)
    limit = None if decided.ask.urgent else limit_of(policy.activity, task.gshare, config)
    places = places_of(decided.decision.chosen, queues, limit, now.given, share)
    if not places:
        return Outcome(0, Wait("none of the chosen queues has storage for outputs", wait_s, pending=True))
    ready = [place for place in places if queues.local[queues.index[place.name]] or now.cycle.readable_anywhere(decided)]
    if not ready:
        names = ", ".join(place.name for place in places[:3])
        reason = f"the input is not at the chosen queues ({names}), and nothing moves it there yet"
        return Outcome(0, Wait(reason, wait_s, pending=True))
    blocks = spread_idle_first(ready, len(chunk.jobs), block_of(scouts=False, config=config), dice(task.id, number))
    placed = _placed(blocks, chunk.jobs, queues, now, task.gshare)
    ask, compensation = policy.prepare(decided.ask, own), own.get("MEMORY_COMPENSATION", 1.0)
    make_jobs(run, task, dataset, chunk.files, placed, ask, compensation, queues, number)
    return Outcome(len(placed)) if placed else Outcome(0, Wait(FULL, FULL_WAIT_S, pending=False))


def _placed(blocks: Sequence[tuple[str, int]], jobs: Sequence[JobPlan], queues: Queues, now: Round, share: str) -> list[Placed]:
    """The jobs laid out over the blocks, in order; the round remembers what each queue was given."""
    placed: list[Placed] = []
    names = own_names(queues)
    for name, n in blocks:
        row = queues.index[name]
        place = replace(now.places[names[row]], storage=str(queues.storage[row]))
        placed += [Placed(place, row, job) for job in jobs[len(placed) : len(placed) + n]]
        now.given.add(share, names[row], n)
    return placed


def _verdict(decided: Decided[Queues]) -> str:
    decision = decided.decision
    closest = f"; closest is {decision.closest}" if decision.closest else ""
    return f"0 of {len(decision.first)} queues passed{closest}; see why"
