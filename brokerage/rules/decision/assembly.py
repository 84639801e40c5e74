"""The one assembly of a decision: from the grid of a moment and what is known of a task to the candidates and the choice.

Agents, what-if, `decide` and the reading of stored decisions all come here, so that they cannot differ. Not here: running the
rules of a policy over the table (`pipeline`), and the stored form (`record`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from brokerage.rules.decision.declare import Policy
from brokerage.rules.decision.pipeline import PolicyDecision, able, decide
from brokerage.rules.decision.policy_choice import NUCLEUS
from brokerage.rules.decision.policy_config import BrokerConfig
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Columns
from brokerage.rules.facts.queue_names import left_by_lists
from brokerage.rules.facts.snapshot import Nuclei, Queues
from brokerage.rules.world.grid_snapshot import GridSnapshot
from brokerage.rules.world.stored_snapshot import TaskFacts
from workqueues.rules.jobs.activity import activity_of

T = TypeVar("T", bound=Columns)


class DecisionRequest(NamedTuple):
    """What the brokerage is asked to decide: for which task, by which policy, on which grid.

    `task_facts`: what is known of the task beyond the snapshot; without the hint of the job broker (`able_queues`) it is made.
    `seed` feeds the dice of policies that draw.
    """

    snapshot: GridSnapshot
    task_facts: TaskFacts
    ask: Ask
    policy: Policy
    config: BrokerConfig
    seed: str = ""


class DecisionInputs(NamedTuple, Generic[T]):
    """What a policy judges, in the order in which `pipeline.decide` and the explanations take it."""

    policy: Policy
    ask: Ask
    columns: T
    config: Config


@dataclass(frozen=True, slots=True)
class TaskDecision(Generic[T]):
    """A decision about a task with what it was taken on; `hint`: what the job broker judged for it, where that was asked."""

    decision: PolicyDecision
    inputs: DecisionInputs[T]
    task_facts: TaskFacts
    hint: DecisionInputs[Queues] | None = None


def decide_task(request: DecisionRequest) -> TaskDecision[Any]:
    """Decide on one request. Raises NoPolicy where the hint needs one."""
    snapshot, task_facts, ask, policy, config, seed = request
    ask, hint = snapshot.completed(ask), None
    if policy.activity == NUCLEUS and task_facts.able_queues is None:
        hint = job_broker_inputs(request)
        task_facts = replace(task_facts, able_queues=dict(sorted(able_queues(*hint).items())))
    columns = candidates(snapshot, task_facts, policy, ask)
    inputs = DecisionInputs(policy, ask, columns, config.values(policy, ask.vo))
    return TaskDecision(decide(*inputs, seed), inputs, task_facts, hint)


def job_broker_inputs(request: DecisionRequest) -> DecisionInputs[Queues]:
    """What the job broker judges for the hint that it gives to the choice of a nucleus.

    A task whose lists leave no queue of a nucleus has its output brought to one all the same: its lists do not count here.
    """
    snapshot, task_facts, ask, _, config, _ = request
    ask, broker = snapshot.completed(ask), config.job_broker(ask)
    anywhere, queues = without_nucleus(ask, queue_table(snapshot, task_facts, broker, ask))
    if (ask.included_sites or ask.excluded_sites) and not _reaches_nucleus(ask, queues, snapshot):
        anywhere = replace(anywhere, included_sites=(), excluded_sites=())
    return DecisionInputs(broker, anywhere, queues, config.values(broker, ask.vo))


def _reaches_nucleus(ask: Ask, queues: Queues, snapshot: GridSnapshot) -> bool:
    """Whether a queue that writes at a nucleus, the one that the task names if any, is among those that its lists leave."""
    nuclei = [ask.nucleus] if ask.nucleus else snapshot.nuclei(ask).name.tolist()
    return bool((left_by_lists(ask, queues) & np.isin(queues.source_site, nuclei)).any())


def without_nucleus(ask: Ask, queues: Queues) -> tuple[Ask, Queues]:
    """What the job broker judges while no nucleus is chosen: every queue is taken as one of it, and as one that has the input.

    Where the input of a whole task is says nothing of the files that one job gets (decision B21).
    """
    count = len(queues)
    input_there = {
        "available_gb": np.full(count, ask.chunk.gb),
        "missing_files": np.zeros(count, dtype=np.int64),
        "source_ok": np.ones(count, dtype=np.bool_),
    }
    return replace(ask, nucleus=None), queues.with_columns(at_nucleus=np.ones(count, dtype=np.bool_), **input_there)


def able_queues(policy: Policy, ask: Ask, queues: Queues, config: Config) -> Mapping[str, int]:
    """Site -> how many queues that write there pass the job broker; 0 for any other site (facts on the brokerage 2.2, 5)."""
    return Counter(queues.source_site[able(policy, ask, queues, config)].tolist())


def candidates(snapshot: GridSnapshot, task_facts: TaskFacts, policy: Policy, ask: Ask) -> Queues | Nuclei:
    """The table that a policy judges: the nuclei with the hint of the job broker, or the queues."""
    if policy.activity != NUCLEUS:
        return queue_table(snapshot, task_facts, policy, ask)
    return _of_task(snapshot, task_facts, policy, ask).nuclei(ask, task_facts.able_queues, task_facts.added)


def queue_table(snapshot: GridSnapshot, task_facts: TaskFacts, policy: Policy, ask: Ask) -> Queues:
    """The queues as the policy sees them for a task."""
    return _of_task(snapshot, task_facts, policy, ask).queues(ask, per_share=policy.per_share)


def _of_task(snapshot: GridSnapshot, task_facts: TaskFacts, policy: Policy, ask: Ask) -> GridSnapshot:
    """The grid with the storages that such a task uses, where its input is, and how its jobs ended."""
    return scoped_for(snapshot, policy, ask).knowing(task_facts.replicas, task_facts.ended)


def scoped_for(snapshot: GridSnapshot, policy: Policy, ask: Ask) -> GridSnapshot:
    """The grid with the storages that such a task uses."""
    return snapshot.scoped("analysis" if is_analysis(policy, ask) else "")


def is_analysis(policy: Policy, ask: Ask) -> bool:
    """Whether the task is one of a user, by who decides on it or by its source label."""
    return "analysis" in (policy.activity, activity_of(ask.prod_source_label))
