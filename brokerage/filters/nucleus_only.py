"""Tasks that run only at the queues of their nucleus."""

from __future__ import annotations

from brokerage.rules.decision.declare import Numbers, filter
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.snapshot import Queues

ONLY_NUCLEUS = -1.0


@filter("not_nucleus", "{what} run only at {nucleus}")
def not_nucleus(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """Priority 800 and more, and scouts, only at queues of the nucleus; not where the task names its queues. Source: seed 000."""
    what = "scouts" if ask.scout else f"tasks of priority {ask.priority}"
    judged = ask.high and ask.nucleus and not ask.preassigned
    return queues.at_nucleus if judged else True, {"what": what, "nucleus": ask.nucleus or ""}


@filter("t1weight", "the task runs only at {nucleus}")
def t1weight(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """t1Weight -1: only queues of the nucleus, but for merge jobs. Source: seed 000; decision B8."""
    judged = ask.t1_weight == ONLY_NUCLEUS and ask.nucleus and not ask.merge
    return queues.at_nucleus if judged else True, {"nucleus": ask.nucleus or ""}
