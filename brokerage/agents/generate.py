"""Agent generate. Takes ready and running tasks with files to use. Leaves jobs activated, or the task pending with the reasons.
Next: pilots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from broker_site import gdpconfig
from broker_site.agency.run import Run, agent
from broker_site.kernel.dice import dice
from brokerage.agents.making import Placed, make_jobs
from brokerage.agents.policy_config import policy_config
from brokerage.ledger.decisions import record_decision, store_snapshot
from brokerage.queries.asks import task_ask
from brokerage.queries.places import QueuePlace, queue_places
from brokerage.queries.snapshot import load_queues
from brokerage.rules.ask import Ask
from brokerage.rules.declare import Config, policy_for
from brokerage.rules.pipeline import Decision, decide
from brokerage.rules.placement import Place, block_of, spread_idle_first
from brokerage.rules.slots import cap, queued, room
from brokerage.rules.snapshot import Queues
from workqueues.agents.each import each
from workqueues.ledger.claims import claim_tasks, release
from workqueues.ledger.files import give_back_picked, take_files
from workqueues.ledger.holds import hold, stay
from workqueues.models import Dataset, File, Task
from workqueues.rules.split_rule import SplitRules, parse
from workqueues.splitters.choice import splitter_for
from workqueues.splitters.protocol import Files, JobPlan, QueueLimits

BATCH = 20
MOST_FILES = 20_000
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
class Cycle:
    """What one run knows of the grid: queues as columns, their places, and the jobs given to them since."""

    queues: Queues
    places: dict[str, QueuePlace]
    snapshot_id: int | None = None
    given: dict[str, int] = field(default_factory=dict)

    def stored(self) -> int:
        """The id of the stored snapshot; stored at the first decision that refers to it."""
        if self.snapshot_id is None:
            self.snapshot_id = store_snapshot(self.queues)
        return self.snapshot_id


@agent("generate")
def generate(run: Run) -> int:
    """Make jobs for every task that has files to use and for which there is room."""
    tasks = claim_tasks(run.id, run.claim_s, ["ready", "running"], BATCH, work="unused inputs")
    if not tasks:
        return 0
    cycle = Cycle(load_queues(), queue_places())
    return each(run, tasks, lambda run, task: generate_for(run, task, cycle))


def generate_for(run: Run, task: Task, cycle: Cycle) -> int:
    """Make jobs for one claimed task and give it back: how many."""
    give_back_picked(run.id, task.id)
    masters = Dataset.objects.filter(
        task_id=task.id, type__in=["input", "pseudo_input"], master=None, status="ready", excluded=False
    )
    made = 0
    for dataset in masters.order_by("id"):
        outcome = _generate_from(run, task, dataset, cycle)
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


def _generate_from(run: Run, task: Task, dataset: Dataset, cycle: Cycle) -> Outcome:
    """Make jobs from one dataset, as many as there is room for."""
    config = gdpconfig.component("jobbroker", vo=task.vo)
    rooms = room(cycle.queues, config["NQUEUELIMITSITE"], cycle.given)
    if rooms and not any(rooms.values()):
        return Outcome(0, Wait(FULL, FULL_WAIT_S, pending=False))
    rules = parse(task.split_rule)
    limits = QueueLimits(max_files=gdpconfig.value("jobsplitter", "MAX_FILES_PER_JOB", vo=task.vo))
    per_job = rules.files_per_job or rules.max_files_per_job or limits.max_files
    most = max(sum(rooms.values()), 1)
    files = take_files(run.id, task.id, dataset.id, min(most * per_job, MOST_FILES))
    jobs = _split(dataset, files, rules, limits, most)
    if not jobs:
        return Outcome(0)
    ask = task_ask(task, dataset, files, jobs)
    decided, decision_id = _decide(task, ask, cycle)
    if decided.outcome == "pending":
        return Outcome(0, Wait(_verdict(decided), decided.wait_s, pending=True))
    places = _places(decided, cycle, config)
    if not places:
        return Outcome(0, Wait("none of the chosen queues has storage for outputs", decided.wait_s or FULL_WAIT_S, pending=False))
    blocks = spread_idle_first(places, len(jobs), block_of(scouts=False, config=config), dice(task.id, decision_id))
    placed = _placed(blocks, jobs, cycle)
    make_jobs(run, task, dataset, files, placed, ask, cycle.queues, decision_id)
    return Outcome(len(placed)) if placed else Outcome(0, Wait(FULL, FULL_WAIT_S, pending=False))


def _placed(blocks: Sequence[tuple[str, int]], jobs: Sequence[JobPlan], cycle: Cycle) -> list[Placed]:
    """The jobs laid out over the blocks, in order; the cycle remembers what each queue was given."""
    placed: list[Placed] = []
    for name, n in blocks:
        place, row = cycle.places[name], cycle.queues.index[name]
        placed += [Placed(place, row, job) for job in jobs[len(placed) : len(placed) + n]]
        cycle.given[name] = cycle.given.get(name, 0) + n
    return placed


def _split(dataset: Dataset, files: list[File], rules: SplitRules, limits: QueueLimits, most: int) -> list[JobPlan]:
    columns = Files(
        ids=[f.id for f in files],
        sizes=[f.fsize or 0 for f in files],
        n_events=[f.n_events or 0 for f in files],
        complete=dataset.n_files_to_be_used <= dataset.n_files_used + len(files) and dataset.state != "open",
    )
    return list(splitter_for(dataset.type)(columns, rules, limits, most))


def _decide(task: Task, ask: Ask, cycle: Cycle) -> tuple[Decision, int]:
    policy = policy_for(task.vo, "generic")
    used = policy_config(policy, task.vo)
    decided = decide(policy, ask, cycle.queues, used, f"{task.id}.{task.epoch}")
    return decided, record_decision(ask, decided, policy, used, gdpconfig.revision(), cycle.stored())


def _places(decided: Decision, cycle: Cycle, config: Config) -> list[Place]:
    """The chosen queues that can take outputs, with what waits there and how much may."""
    places = []
    for choice in decided.chosen:
        if cycle.places[choice.name].storage:
            row = cycle.queues.index[choice.name]
            waiting = queued(cycle.queues, row) + cycle.given.get(choice.name, 0)
            places.append(
                Place(choice.name, choice.weight, waiting, cap(int(cycle.queues.running[row]), config["NQUEUELIMITSITE"]))
            )
    return places


def _verdict(decided: Decision) -> str:
    closest = f"; closest is {decided.closest}" if decided.closest else ""
    return f"0 of {len(decided.first)} queues passed{closest}; see why"
