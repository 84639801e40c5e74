"""The jobs that one run of the agent generate makes of one dataset: input is picked, queues are decided on, jobs are placed and
made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run
from broker_site.foundation.kernel.dice import dice
from brokerage.agents.decision_cycle import DecisionCycle
from brokerage.agents.idle_room import IdleRoom
from brokerage.agents.throttling import Throttle
from brokerage.config_keys import SERVER
from brokerage.ledger.generate import give_up, make_jobs, take_input
from brokerage.queries.chunks import CannotAsk, UnknownInput
from brokerage.queries.owner_traffic import OwnerTraffic
from brokerage.queries.placement_rounds import last_change, recent_starts
from brokerage.queries.scouts import standings_of
from brokerage.queries.usable_input import queues_of_failures
from brokerage.rules.decision.assembly import TaskDecision, scoped_for
from brokerage.rules.decision.policy_choice import Unusable
from brokerage.rules.explain.explanation import shortfall
from brokerage.rules.facts.ask import Ask
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.placement.binding import Binding, binding_of
from brokerage.rules.placement.distribution import ChosenQueue
from brokerage.rules.placement.input_ways import NoPlace, Reachable, reachable
from brokerage.rules.placement.job_builder import deal
from brokerage.rules.placement.memory_turns import MemoryTurns
from brokerage.rules.placement.open_jobs import jobs_by_queue
from brokerage.rules.placement.place_jobs import Placement, most_jobs, place_jobs
from brokerage.rules.placement.room import parts_of_shares, queue_loads
from brokerage.rules.placement.slots import JobGrants
from brokerage.rules.placement.usable_input import UsableInput
from brokerage.rules.placement.user_priority import OwnerStanding, boosted_priority
from brokerage.rules.transfers.job_wishes import owner_of
from workqueues.ledger.open_inputs import hold_absent
from workqueues.ledger.picking import give_back_picked
from workqueues.models import Dataset, Task
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.jobs.job_parameters import UnresolvedPlaceholder
from workqueues.rules.jobs.split_rule import parse
from workqueues.rules.refine.data_rights import NOT_READ_ANY_MORE
from workqueues.splitters.check import BadPlan


class Delay(NamedTuple):
    """Why a task is put aside, and for how many seconds; `pending`: no queue passes at all, by this `decision`."""

    reason: str
    seconds: float
    pending: bool = True
    decision: TaskDecision[Queues] | None = None


FIRST = 3
"""Tasks of a run that are loaded before the others."""
FULL_S = 0.2
"""How long a task rests at least whose queues are full, so that others are served, s."""
MISFIT_S = 5.0
"""The same where slots idle for which its jobs turned out too large once it was decided where they may run, s."""
QUEUES_FULL = Delay("every queue that may take the task has as many waiting jobs as it may", FULL_S, pending=False)

MISFIT = QUEUES_FULL._replace(seconds=MISFIT_S)

DatasetJobs = tuple[int, Delay | None]
"""Jobs made from one dataset, and what the task waits for, if it does."""


@dataclass(slots=True)
class GenerateRun:
    """What one run knows: its tasks in their order, the cycle of decisions, the ids of queues, what of the grid is too old, and
    the jobs that it gave to queues.

    `last_change`: number of the last move of a job before it. `loaded`: by task, whether what it reads could be loaded. `full`:
    those for which no queue had room. `traffic`: what is on the way for users, read where it matters. `made_for`: how many jobs,
    by owner. `scouts`: how many more are to be made of tasks that scout. `first_come`: idle slots are for whoever comes first, as
    the run before kept some for shares that could not use them. `beside`: tasks that get jobs only for slots that
    idle beside jobs of others.
    """

    run: Run
    tasks: Sequence[Task]
    cycle: DecisionCycle
    queue_ids: Mapping[str, int]
    throttle: Throttle
    stale: Sequence[str] = ()
    first_come: bool = False
    last_change: int = field(default_factory=last_change)
    loaded: dict[int, bool] = field(default_factory=dict)
    full: list[int] = field(default_factory=list)
    traffic: OwnerTraffic = field(default_factory=OwnerTraffic)
    made_for: Counter[tuple[str, str]] = field(default_factory=Counter)
    beside: set[int] = field(default_factory=set)
    scouts: dict[int, int] = field(init=False)
    grants: JobGrants = field(init=False)
    idle_room: IdleRoom = field(init=False)

    def __post_init__(self) -> None:
        scouting = [task.id for task in self.tasks if parse(task.split_rule).scouting]
        self.scouts = {task_id: standing.step.more for task_id, standing in standings_of(scouting).items()}
        snapshot = self.cycle.requests.snapshot
        loads = queue_loads(snapshot.facts, snapshot.now, recent_starts(self.last_change))
        units, wanting = self.throttle.units, {group.gshare for group in self.throttle.open}
        beside = len(units.without_shares(self.throttle.vos))
        parts = parts_of_shares(snapshot.facts, units.percents_of_shares(), wanting, beside)
        in_turn = () if self.first_come else [task.gshare for task in self.tasks]
        self.grants = JobGrants(loads, parts, in_turn)
        self.idle_room = IdleRoom(self.grants, self.tasks)

    def excess(self, task: Task) -> str:
        """Why no more input is brought for the owner of the task; empty where it is."""
        return "; ".join(self.traffic.excess(task.vo, owner_of(task.user_name, task.working_group)).values())


def finds_room(task: Task, run_state: GenerateRun) -> bool:
    """Whether it is worth while to look at the input of a task: not if the queues have no room for it, whatever else keeps it."""
    if run_state.stale:
        return True
    try:
        return _most_jobs(task, run_state) > 0
    except Unusable:
        return True


def load(task: Task, run_state: GenerateRun) -> bool:
    """Load what the task reads, unless it is loaded, and what those after it do: whether it could be had; else it is set aside.

    Of few at first: they may fill the queues, and the others be in vain.
    """
    if task.id not in run_state.loaded:
        left = run_state.tasks[run_state.tasks.index(task) :]
        portion = [one for one in left if finds_room(one, run_state)] if run_state.loaded else list(left[:FIRST])
        ids = [one.id for one in portion]
        run_state.cycle.load(run_state.run, portion)
        run_state.loaded |= dict.fromkeys(ids, False) | dict.fromkeys((one.id for one in portion), True)
    return run_state.loaded[task.id]


def jobs_from(task: Task, dataset: Dataset, run_state: GenerateRun) -> DatasetJobs:
    """Make jobs from one dataset, as many as there is room for; none, and no wait, where the throttler has none left.

    Of files whose jobs ask for different memory in turns: where those of one find no place, those of the next may.
    """
    turns, made, delays = MemoryTurns(task.ram_count or 0, parse(task.split_rule).cutting), 0, []
    room = run_state.throttle.room(task)
    while room is None or room > made:  # since the master before
        n, delay = _turn(task, dataset, made, turns, run_state)
        made += n
        delays += [delay] if delay else []
        if not turns.more or run_state.scouts.get(task.id) == 0:
            break
        give_back_picked(run_state.run.id, task.id)
    return made, None if made else min(delays, key=lambda delay: delay.seconds, default=None)


def _turn(task: Task, dataset: Dataset, before: int, turns: MemoryTurns, run_state: GenerateRun) -> DatasetJobs:
    """Make jobs of the files whose turn it is; so many were made `before`, of which the throttler does not know yet."""
    turns.more = False
    pending_s = gdpconfig.value("jobbroker", "PENDING_GENERIC", vo=task.vo)
    if closed := run_state.cycle.requests.batch.withheld.get(task.id):
        return 0, Delay(f"waiting for the input {closed}, {NOT_READ_ANY_MORE}", pending_s)
    if run_state.stale:
        return 0, Delay(run_state.stale[0], gdpconfig.value("feeds", "FEED_PERIOD"))
    try:
        most = _most_jobs(task, run_state, before)
        if task.id in run_state.scouts:
            most = min(most, run_state.scouts[task.id])
        made, delay = _make(task, dataset, most, turns, run_state) if most else (0, QUEUES_FULL)
        if task.id in run_state.scouts:
            run_state.scouts[task.id] -= made
        return made, delay
    except UnknownInput as error:
        return 0, None if _skipped(task, dataset, error, run_state.run) else Delay(str(error), pending_s)
    except (Unusable, BadPlan, CannotAsk, UnresolvedPlaceholder, NoPlace) as error:
        return 0, Delay(str(error), pending_s)


def _skipped(task: Task, dataset: Dataset, unknown: UnknownInput, run: Run) -> bool:
    """Whether the task goes on without this dataset, which is deleted: its files are looked for once more, and lost then."""
    if unknown.dataset_name != dataset.dataset_name or not parse(task.split_rule).ignore_missing:
        return False
    give_back_picked(run.id, task.id)
    return hold_absent(run.id, dataset, (), run.who) > 0


def _most_jobs(task: Task, run_state: GenerateRun, before: int = 0) -> int:
    """Jobs that can be made for the task now, before anything is known of its input."""
    ask = Ask(
        prod_source_label=task.prod_source_label,
        share=task.gshare or None,
        resource_type=task.resource_type or None,
        priority=task.current_priority,
        processing_type=task.processing_type,
    )
    requests, room = run_state.cycle.requests, run_state.throttle.room(task)
    room = None if room is None else room - before
    policy = requests.config.policy(task.vo, activity_of(task.prod_source_label))
    config = gdpconfig.component("jobbroker", vo=task.vo)
    run_state.beside.discard(task.id)
    most = most_jobs(requests.snapshot, policy, ask, run_state.grants, config, room)
    if most <= 0:
        with run_state.idle_room.of(task):
            most = most_jobs(requests.snapshot, policy, ask, run_state.grants, config, room)
        run_state.beside |= {task.id} if most > 0 else set()
    return most


def _make(task: Task, dataset: Dataset, most: int, turns: MemoryTurns, run_state: GenerateRun) -> DatasetJobs:
    """Pick input, decide on queues, place and make the jobs. Raises NoPlace and what deciding and cutting raise."""
    run, cycle = run_state.run, run_state.cycle
    usable = take_input(run.id, task, dataset, most, run.who, turns)
    if not len(usable.columns):
        return 0, None
    if not (smallest := usable.smallest(most)):
        _give_up_all(task, usable, run)
        return 0, None
    task_decision = cycle.decide(cycle.requests.for_queues(task, dataset, usable, smallest))
    if task_decision.decision.outcome == "pending":
        return 0, Delay(shortfall(task_decision), task_decision.decision.wait_s, decision=task_decision)
    decision_id = cycle.decisions.store()
    try:
        placement = _place(task, usable, task_decision, most, decision_id, run_state)
    except NoPlace as error:
        return 0, Delay(str(error), gdpconfig.value("jobbroker", "PENDING_GENERIC", vo=task.vo), decision=task_decision)
    give_up(run.id, task.id, usable, placement.dropped, run.who)
    jobs, lack = deal(usable, placement.jobs)
    owner, binding = _owner(task, task_decision, run_state), _binding(task, usable)._replace(why_early=placement.why_early)
    make_jobs(run.id, task, usable, jobs, decision_id, run.who, placement.ways, owner, binding)
    run_state.made_for[owner_key(task)] += len(jobs)
    if jobs or placement.dropped:
        return len(jobs), None
    if reason := lack or placement.reason:
        return 0, Delay(reason, gdpconfig.value("jobbroker", "PENDING_GENERIC", vo=task.vo), pending=False)
    return 0, MISFIT if task.id in run_state.beside else QUEUES_FULL


def owner_key(task: Task) -> tuple[str, str]:
    """Who has the jobs of the task: its VO, and its user or group."""
    return task.vo, owner_of(task.user_name, task.working_group)


def _owner(task: Task, task_decision: TaskDecision[Queues], run_state: GenerateRun) -> OwnerStanding | None:
    """How many jobs the owner of an analysis task has already, and the priority that operators gave them."""
    if activity_of(task.prod_source_label) != "analysis":
        return None
    usage = task_decision.inputs.ask.usage
    boosts = gdpconfig.value("dbproxy", "USER_JOB_PRIO_BOOST_DICTS", vo=task.vo, app=SERVER)
    return OwnerStanding(
        usage.running_jobs + usage.queued_jobs + run_state.made_for[owner_key(task)],
        gdpconfig.value("jobgen", "USER_JOBS_PER_POINT", vo=task.vo),
        boosted_priority(boosts, task.user_name, task.working_group, run_state.run.now.date()),
    )


def _give_up_all(task: Task, usable: UsableInput, run: Run) -> None:
    """Give up input of which no job can be made at any queue. Raises NoPlace where no rule of the task gives it up."""
    split = usable.cut_anywhere()
    give_up(run.id, task.id, usable, split.dropped, run.who)
    if not split.dropped:
        raise NoPlace(split.reason or "its files make no job")


def _place(
    task: Task, usable: UsableInput, task_decision: TaskDecision[Queues], most: int, decision_id: int, run_state: GenerateRun
) -> Placement:
    """Cut jobs for the chosen queues, and count them there."""
    config = gdpconfig.component("jobbroker", vo=task.vo)
    queue_ids, grants, requests = run_state.queue_ids, run_state.grants, run_state.cycle.requests

    def choose(chosen: Sequence[ChosenQueue]) -> Reachable:
        inputs = task_decision.inputs
        grid = scoped_for(requests.snapshot, inputs.policy, inputs.ask)
        unsure = bool(usable.others) and requests.batch.has_parts_of_others(task)
        return reachable(chosen, task_decision, grid, unsure=unsure, over=lambda: run_state.excess(task))

    chance, failed_at = dice(task.id, decision_id), queues_of_failures(usable.files)
    binding = _binding(task, usable)
    idle_room = run_state.idle_room.of(task, task_decision) if task.id in run_state.beside else nullcontext()
    with idle_room:
        placement = place_jobs(usable, task_decision, choose, queue_ids, grants, most, config, chance, failed_at, binding)
    grants.add(task.gshare, jobs_by_queue(placement.jobs, decision_id))
    return placement


def _binding(task: Task, usable: UsableInput) -> Binding:
    """When the jobs of the task get their queue."""
    activity, config = activity_of(task.prod_source_label), gdpconfig.component("dispatch", vo=task.vo)
    by_generator = usable.generation.writes_parameters
    return binding_of(task.params.task_params, activity, task.core_count, config, writes_parameters=by_generator)
