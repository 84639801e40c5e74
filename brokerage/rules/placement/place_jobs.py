"""The jobs that a decision lets a task have now: cut for the chosen queues, each with its queue and what it asks of a slot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from brokerage.rules.decision.assembly import TaskDecision, queue_table
from brokerage.rules.decision.declare import Policy
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.placement.binding import EARLY, Binding
from brokerage.rules.placement.distribution import NOWHERE, Block, ChosenQueue, block_of, lay_out
from brokerage.rules.placement.input_ways import InputWay, Reachable
from brokerage.rules.placement.job_limits import limits_at, limits_of_task
from brokerage.rules.placement.new_job import PlacedJob
from brokerage.rules.placement.open_jobs import OPEN, OpenSlots, one_then_others, only_early, open_jobs, smallest, to_be_opened
from brokerage.rules.placement.slots import JobGrants, SlotsAt, chosen_queues, limit_of, total_room
from brokerage.rules.placement.usable_input import UsableInput
from brokerage.rules.world.grid_snapshot import GridSnapshot
from brokerage.rules.world.stored_snapshot import TaskFacts
from workqueues.splitters.protocol import Dropped, JobLimits

NO_WAYS: Mapping[str, InputWay] = MappingProxyType({})
Choose = Callable[[Sequence[ChosenQueue]], Reachable]
"""Which of some queues can get the input of a task. Raises NoPlace."""

MOST_JOBS = 10_000
"""Jobs that are made from one dataset at once where no cap binds."""


class Placement(NamedTuple):
    """The jobs, and why there are no more. `dropped`: events that no job takes, by the task's own rules.

    `ways`: how jobs get input that may not be at their queue, for the queues where that is so. `why_early`: why they got their
    queue now, where the task wished for something else.
    """

    jobs: Sequence[PlacedJob]
    dropped: Sequence[Dropped]
    reason: str
    ways: Mapping[str, InputWay] = NO_WAYS
    why_early: str = ""


def most_jobs(snapshot: GridSnapshot, policy: Policy, ask: Ask, grants: JobGrants, config: Config, room: int | None) -> int:
    """Jobs for which there is room at all queues together, and that the throttler leaves.

    `ask` of the task as far as it is known without its input; `room` of the throttler, None without limit; `config`: component
    jobbroker.
    """
    most = MOST_JOBS if room is None else min(room, MOST_JOBS)
    queues = queue_table(snapshot, TaskFacts(), policy, ask)
    if not len(queues):
        return most
    return min(total_room(queues, limit_of(policy.activity, ask.share, config), grants, _share(policy, ask)), most)


def _share(policy: Policy, ask: Ask) -> str | None:
    """Whose jobs are counted: those of the share of the task where it has one and the policy looks at it, else all."""
    return ask.share if policy.per_share else None


def chosen_places(task_decision: TaskDecision[Queues], choose: Choose, grants: JobGrants, config: Config) -> Reachable:
    """The chosen queues at which jobs of the task can run, with the room there. Raises NoPlace; arguments as of `place_jobs`."""
    policy, ask, queues, _ = task_decision.inputs
    limit = limit_of(policy.activity, ask.share, config)
    return choose(chosen_queues(task_decision.decision.chosen, queues, limit, grants, _share(policy, ask)))


def place_jobs(
    usable: UsableInput,
    task_decision: TaskDecision[Queues],
    choose: Choose,
    queue_ids: Mapping[str, int],
    grants: JobGrants,
    most: int,
    config: Config,
    dice: Random,
    failed_at: Mapping[int, str] = NOWHERE,
    binding: Binding = EARLY,
) -> Placement:
    """Cut jobs for the queues that a decision chose, at most so many. Raises NoPlace, BadPlan.

    `choose` says which of them can get the input; `queue_ids` by name; `config`: component jobbroker; `failed_at`: the queue at
    which the last job of a file failed, by the file's id; `binding`: when the jobs get their queue.
    """
    policy, ask, queues, policy_config = task_decision.inputs
    chosen, ways = chosen_places(task_decision, choose, grants, config)
    ask, compensation = policy.prepare(ask, policy_config), policy_config.get("MEMORY_COMPENSATION", 1.0)
    limits = limits_by_queue(usable, ask, queues, chosen)
    there = [queue for queue in chosen if queues.own_names[queues.index[queue.name]] not in ways]
    why_early = only_early(binding, len(there))
    is_open = binding.is_late and not why_early
    drawn, block = chosen, block_of(usable.kind, config)
    if is_open:
        limits |= dict.fromkeys((queue.name for queue in there), smallest(limits[queue.name] for queue in there))
    if is_open and binding.mode == "late":
        drawn = one_then_others(there, chosen)
        limits[OPEN] = limits[there[0].name]
    positions = {i: failed_at[id_] for i, id_ in enumerate(usable.columns.ids) if id_ in failed_at} if failed_at else NOWHERE
    layout = lay_out(
        usable.columns, usable.secondaries, usable.cut, limits.__getitem__, drawn, most, block, dice, failed_at=positions
    )
    slots = OpenSlots(ask, queues, there, queue_ids, compensation) if is_open else None
    jobs = [job for each in layout.blocks for job in _jobs_of(each, slots, there, ask, queues, queue_ids, compensation)]
    return Placement(jobs, layout.dropped, layout.reason, ways, why_early)


def _jobs_of(
    block: Block,
    slots: OpenSlots | None,
    there: Sequence[ChosenQueue],
    ask: Ask,
    queues: Queues,
    queue_ids: Mapping[str, int],
    compensation: float,
) -> Sequence[PlacedJob]:
    """The jobs of a block, of its queue or open to those that are `there`: by `slots`, where jobs may be open."""
    if slots is None:
        return jobs_at_queue(block, ask, queues, queue_ids, compensation)
    if block.queue != OPEN:
        jobs = jobs_at_queue(block, ask, queues, queue_ids, compensation)
        return [to_be_opened(job, slots) for job in jobs]
    placed = list[PlacedJob]()
    for job in open_jobs(block, slots):
        if isinstance(job, PlacedJob):
            placed.append(job)
        else:  # no two of the queues can run it: the first one gets it
            placed += jobs_at_queue(Block(there[0].name, (job,)), ask, queues, queue_ids, compensation)
    return placed


def limits_by_queue(usable: UsableInput, ask: Ask, queues: Queues, chosen: Sequence[ChosenQueue]) -> dict[str, JobLimits]:
    """What one job of the input may take at each of these queues, as its generator says too. Raises BadPlan."""
    of_task = limits_of_task(ask, usable.max_files)
    sized = usable.rules.sized
    of_queues = {queue.name: limits_at(ask, queues, queues.index[queue.name], of_task, sized=sized) for queue in chosen}
    return {name: usable.generation.limits(limits) for name, limits in of_queues.items()}


def jobs_at_queue(
    block: Block, ask: Ask, queues: Queues, queue_ids: Mapping[str, int], compensation: float
) -> Sequence[PlacedJob]:
    """The jobs of a block, at the queue that exists: of a pseudo-queue its unified one. `ask` as the policy prepared it."""
    row = queues.index[block.queue]
    name, storage = queues.own_names[row], str(queues.storage[row])
    slots = SlotsAt(ask, queues, row, compensation)
    return [PlacedJob(queue_ids[name], name, storage, plan, slots.of(plan.size, plan.n_events)) for plan in block.jobs]
