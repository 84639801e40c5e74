"""The table of candidates that a policy judges, made from a snapshot of the grid and what is known of the task beyond it."""

from __future__ import annotations

from brokerage.rules.decision.declare import Policy
from brokerage.rules.facts.ask import Ask
from brokerage.rules.facts.columns import Columns
from brokerage.rules.facts.snapshot import Nuclei, Queues
from brokerage.rules.world.grid_snapshot import GridSnapshot
from brokerage.rules.world.stored_snapshot import TaskFacts


def table(world: GridSnapshot, own: TaskFacts, policy: Policy, ask: Ask) -> Columns:
    """The candidates of a policy as a task saw them, from the snapshot and what the decision knew beyond it."""
    if policy.activity == "nucleus":
        return table_of_nuclei(world, own, ask)
    return table_of_queues(world, own, policy, ask)


def table_of_queues(world: GridSnapshot, own: TaskFacts, policy: Policy, ask: Ask) -> Queues:
    """The same for a policy that chooses queues."""
    return world.knowing(own.replicas, own.ended).queues(ask, per_share=policy.per_share)


def table_of_nuclei(world: GridSnapshot, own: TaskFacts, ask: Ask) -> Nuclei:
    """The same for one that chooses a nucleus."""
    return world.knowing(own.replicas, own.ended).nuclei(ask, own.able_queues, own.added)
