"""How jobs get input that is not at their queue: read from other sites, or brought; and where it may be brought.

Source: facts on data movement 2.1, 2.2; seed 001, "Input data transfer"; decision I5. Not here: which files of a job these are
(`brokerage.queries.missing_input`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from brokerage.rules.decision.assembly import DecisionInputs, TaskDecision, is_analysis
from brokerage.rules.facts.local_input import LOCALITY_KEYS, wants_local_input
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.grid.queue_columns import up
from brokerage.rules.placement.distribution import ChosenQueue
from brokerage.rules.world.grid_snapshot import GridSnapshot

SHOWN = 3
"""Queues that are named to who asks why nothing is made."""


class NoPlace(Exception):
    """No chosen queue can take jobs; the message says why."""


class InputWay(NamedTuple):
    """How jobs at a queue get a file: they read it at `reads`, else from `direct` over the network; else it is brought to
    `destination`.
    """

    reads: Sequence[str]
    direct: Collection[str] = ()
    destination: str = ""


class Reachable(NamedTuple):
    """The chosen queues at which jobs can get their input; where some of it may not be at hand, how they get it, by the name of
    the queue that exists.
    """

    queues: Sequence[ChosenQueue]
    ways: Mapping[str, InputWay]


def reachable(
    chosen: Sequence[ChosenQueue],
    task_decision: TaskDecision[Queues],
    grid: GridSnapshot,
    *,
    unsure: bool,
    over: Callable[[], str],
) -> Reachable:
    """The chosen queues that can get the input. Raises NoPlace.

    `grid` of the task's scope. `unsure`: not all that counts as being at a queue is known to be. `over` tells why the
    task's owner may have no more brought, empty where he may.
    """
    if not chosen:
        raise NoPlace("none of the chosen queues has storage for outputs")
    queues, refusal = task_decision.inputs.columns, None
    far = reads_from_afar(task_decision.inputs, grid)
    left, ways, lack = list[ChosenQueue](), dict[str, InputWay](), ""
    for queue in chosen:
        row = queues.index[queue.name]
        name, local = queues.own_names[row], bool(queues.local[row])
        if local and not unsure and name not in far:
            left.append(queue)
            continue
        way = way_at(name, grid, name in far)
        if not local and not way.direct:
            refusal = immobility(task_decision, over) if refusal is None else refusal
            lack = refusal or ("" if way.destination else f"{name} has no storage in service that takes input")
            if lack:
                continue
        left.append(queue)
        ways[name] = way
    if not left:
        names = ", ".join(queue.name for queue in chosen[:SHOWN])
        raise NoPlace(f"the input is not at the chosen queues ({names}), and is not brought there: {lack}")
    return Reachable(left, ways)


def way_at(queue: str, grid: GridSnapshot, far: bool) -> InputWay:
    """How jobs at a queue get their input: it is brought to the first storage they read that takes it."""
    read = [s for s in grid.queue_storages[queue].reads if up(s, "read_lan") and not s.columns["is_tape"]]
    destination = next((storage.name for storage in read if up(storage, "write_wan")), "")
    return InputWay([storage.name for storage in read], grid.far_sources if far else (), destination)


def reads_from_afar(inputs: DecisionInputs[Queues], grid: GridSnapshot) -> Collection[str]:
    """The queues at which jobs of the task read input wherever it is: directly where both allow it, or through a cache."""
    ask, queues = inputs.ask, inputs.columns
    far = set(grid.far_readers) if ask.read_wan else set[str]()
    if queues.virtual.any() and not (ask.avoid_vp or ask.merge or ask.scout or ask.use_local_io):
        far |= {queues.own_names[row] for row in np.flatnonzero(queues.virtual).tolist()}
    return far


def immobility(task_decision: TaskDecision[Queues], over: Callable[[], str]) -> str:
    """Why input is brought nowhere for the task; empty where it is (decision I5).

    Production moves it wherever the brokerage lets the task run. Jobs of users go to their input until every queue that has it
    has closed some of them, unless the task may run away from its input (seed 000); and not while the user has too much on the
    way. A queue that never could take the task, or whose site offers none of its stations, keeps no input from moving.
    """
    policy, ask, queues, config = task_decision.inputs
    known = {replica["dataset"] for replica in task_decision.task_facts.replicas}
    if nowhere := [dataset.name for dataset in ask.chunk.datasets if dataset.name not in known]:
        return f"no copy of {nowhere[0]} is known"
    if not is_analysis(policy, ask):
        return ""
    if excess := over():
        return excess
    if not wants_local_input(ask, {key: config.get(key) for key in LOCALITY_KEYS}):
        return ""
    failed = task_decision.decision.failed()[: len(policy.judged)]
    away = [number for number, criterion in enumerate(policy.judged) if criterion.lasts or criterion.opens]
    waiting = queues.local & ~failed[away].any(axis=0) & (queues.task_closed == 0)
    if not waiting.any():
        return ""
    names = sorted({queues.own_names[row] for row in np.flatnonzero(waiting).tolist()})
    shown = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
    return f"{shown} has it, and jobs of users go to their input while no job of the task was closed there lately"
