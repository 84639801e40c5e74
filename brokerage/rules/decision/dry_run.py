"""A decision without a database, and its answer as JSON data: what `decide` and what-if give.

Here: which policy an ask takes, which table it decides on, and the answer. Not here: the decision itself (`pipeline`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from brokerage.rules.decision.declare import Policy, policy_for
from brokerage.rules.decision.nucleus_hint import able_queues
from brokerage.rules.decision.pipeline import decide, skips
from brokerage.rules.decision.record import config_of
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Columns
from brokerage.rules.world.grid_snapshot import GridSnapshot

USERS = ("user", "panda")
"""Labels of tasks of users; all other work is production."""


def activity_of(prod_source_label: str) -> str:
    """The activity of a task's jobs by its label."""
    return "analysis" if prod_source_label in USERS else "production"


def scope_of(prod_source_label: str) -> str:
    """The scope of the storages that tasks of this label use."""
    return "analysis" if activity_of(prod_source_label) == "analysis" else ""


def table_for(
    policy: Policy,
    ask: Ask,
    world: GridSnapshot,
    config_for: Callable[[Policy], Config],
    choose: Callable[[str, str], Policy] = policy_for,
) -> Columns:
    """The candidates of a policy as the task sees them: nuclei with the hint of the job broker, or queues.

    `choose`: VO and activity to the policy of the job broker.
    """
    if policy.activity != "nucleus":
        return world.queues(ask, per_share=policy.per_share)
    brokers = choose(ask.vo, activity_of(ask.prod_source_label))
    return world.nuclei(ask, able_queues(brokers, ask, world.queues(ask), config_for(brokers)))


def answer(policy: Policy, ask: Ask, columns: Columns, config: Config, seed: str) -> dict[str, Any]:
    """What the policy decides: the chosen, best first, and every skipped candidate by name with its first criterion."""
    used = config_of(policy, config)
    decided = decide(policy, ask, columns, used, seed)
    reasons = skips(decided, policy, ask, columns, used)
    names = [factor.name for factor in policy.weights]
    return {
        "policy": decided.policy,
        "outcome": decided.outcome,
        "chosen": [
            {"queue": c.name, "weight": c.weight, "factors": dict(zip(names, c.factors, strict=True))} for c in decided.chosen
        ],
        "skipped": [
            {
                "queue": name,
                "criterion": skip.criterion,
                "kind": skip.kind,
                "reason": skip.reason,
                "numbers": _numbers(skip.numbers),
            }
            for name, skip in sorted(reasons.items())
        ],
        "closest": decided.closest or None,
        "wait_s": decided.wait_s,
        "eased": list(dict.fromkeys(f"-{policy.criteria[i].label}" for i in decided.eased)),
    }


def _numbers(numbers: Mapping[str, object]) -> dict[str, object]:
    """What JSON can hold: not a number, and no limit, are null."""
    return {name: None if isinstance(value, float) and not isfinite(value) else value for name, value in numbers.items()}
