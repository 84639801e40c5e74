"""The jobs that a decision lets a task have now: cut for the chosen queues, each with its queue and what it asks of a slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.job_kind import JobKind
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.placement.distribution import Block, ChosenQueue, block_of, lay_out
from brokerage.rules.placement.job_limits import limits_at, limits_of_task
from brokerage.rules.placement.new_job import PlacedJob
from brokerage.rules.placement.slots import SlotsAt, own_names
from brokerage.rules.placement.usable_input import UsableInput
from workqueues.splitters.protocol import Dropped, JobLimits


class NoPlace(Exception):
    """No chosen queue can take jobs; the message says why."""


class Placement(NamedTuple):
    """The jobs, and why there are no more. `dropped`: events that no job takes, by the task's own rules."""

    jobs: Sequence[PlacedJob]
    dropped: Sequence[Dropped]
    reason: str


def able_queues(chosen: Sequence[ChosenQueue], queues: Queues, *, readable_anywhere: bool) -> list[ChosenQueue]:
    """The chosen queues at which the input can be read; `readable_anywhere`: pilots reach all of it. Raises NoPlace."""
    if not chosen:
        raise NoPlace("none of the chosen queues has storage for outputs")
    able = [queue for queue in chosen if readable_anywhere or queues.local[queues.index[queue.name]]]
    if not able:
        names = ", ".join(queue.name for queue in chosen[:3])
        raise NoPlace(f"the input is not at the chosen queues ({names}), and nothing moves it there yet")
    return able


def place_jobs(
    usable: UsableInput,
    ask: Ask,
    queues: Queues,
    chosen: Sequence[ChosenQueue],
    queue_ids: Mapping[str, int],
    most: int,
    config: Config,
    dice: Random,
    compensation: float,
) -> Placement:
    """Cut jobs for the chosen queues, at most so many. Raises BadPlan.

    `ask` as the policy prepared it, `compensation` as for `SlotsAt`; `queue_ids` by name; `config`: component jobbroker.
    """
    limits = limits_by_queue(usable, ask, queues, chosen)
    block = block_of(JobKind.NORMAL, config)
    layout = lay_out(usable.columns, usable.secondaries, usable.cut, limits.__getitem__, chosen, most, block, dice)
    jobs = [job for block in layout.blocks for job in _jobs_of(block, ask, queues, queue_ids, compensation)]
    return Placement(jobs, layout.dropped, layout.reason)


def limits_by_queue(usable: UsableInput, ask: Ask, queues: Queues, chosen: Sequence[ChosenQueue]) -> dict[str, JobLimits]:
    """What one job of the input may take at each of these queues, as its generator says too. Raises BadPlan."""
    of_task = limits_of_task(ask, usable.max_files)
    sized = bool(usable.rules.files_per_job or usable.rules.events_per_job or usable.rules.target_events)
    of_queues = {queue.name: limits_at(ask, queues, queues.index[queue.name], of_task, sized=sized) for queue in chosen}
    return {name: usable.generation.limits(limits) for name, limits in of_queues.items()}


def _jobs_of(block: Block, ask: Ask, queues: Queues, queue_ids: Mapping[str, int], compensation: float) -> Sequence[PlacedJob]:
    """The jobs of a block at the queue that exists: of a pseudo-queue its unified one."""
    row = queues.index[block.queue]
    name, storage = own_names(queues)[row], str(queues.storage[row])
    slots = SlotsAt(ask, queues, row, compensation)
    return [PlacedJob(queue_ids[name], name, storage, plan, slots.of(plan.size, plan.n_events)) for plan in block.jobs]
