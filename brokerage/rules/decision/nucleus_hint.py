"""What the job broker says to the task broker: at which sites a task could run at all (facts on the brokerage 2.2, 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from brokerage.rules.decision.declare import Policy
from brokerage.rules.decision.pipeline import able, decide, skips
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.snapshot import Queues

MOST_NAMED = 3
"""Sites that a sentence names."""


def able_queues(policy: Policy, ask: Ask, queues: Queues, config: Config) -> Mapping[str, int]:
    """Site -> how many of its queues pass the job broker, each taken as one of the nucleus; 0 for any other site.

    `policy` is that of the job broker, `config` its configuration; the nucleus is not chosen yet.
    """
    passing = able(policy, replace(ask, nucleus=None), at_home(queues), config)
    return Counter(queues.site[passing].tolist())


def where_able(policy: Policy, ask: Ask, queues: Queues, config: Config) -> str:
    """In words where the jobs of a task could run at all: sites, or the closest queue and what it lacks."""
    if able := able_queues(policy, ask, queues, config):
        more = f" and {len(able) - MOST_NAMED} more sites" if len(able) > MOST_NAMED else ""
        return f"its jobs could run at {', '.join(sorted(able)[:MOST_NAMED])}{more}"
    anywhere, table = replace(ask, nucleus=None), at_home(queues)
    decision = decide(policy, anywhere, table, config, "")
    if not decision.closest:
        return "there is no queue for such tasks"
    skip = skips(decision, policy, anywhere, table, config)[decision.closest]
    return f"its jobs can run nowhere: the closest queue is {decision.closest}, {skip.reason} ({skip.criterion})"


def at_home(queues: Queues) -> Queues:
    """The queues, each taken as one of the nucleus."""
    return queues.with_columns(at_nucleus=np.ones(len(queues), dtype=np.bool_))
