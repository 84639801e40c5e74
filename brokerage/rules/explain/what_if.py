"""What-if: what the brokerage would decide now, and what it would if something were different. Pure.

Here: the decision on the grid of the moment, the same after edits, and which candidates changed their verdict. Not here: reading
the edits (`edits`), and the request of this moment (`brokerage.queries.what_if`). Nothing is written, whatever comes out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from broker_site.foundation.gdpconfig.texts import thawed
from brokerage.rules.decision.assembly import DecisionInputs, DecisionRequest, decide_task, job_broker_inputs
from brokerage.rules.decision.pipeline import PolicyDecision, decide
from brokerage.rules.decision.policy_choice import NUCLEUS
from brokerage.rules.decision.record import decode, encode
from brokerage.rules.explain.edits import BadEdits, Edit, EditResult, edited_ask, edited_config, edited_grid
from brokerage.rules.explain.explanation import Explanation, explain
from brokerage.rules.facts.ask import Ask
from brokerage.rules.world.grid_snapshot import GridSnapshot

CHOSEN, ABSENT = "chosen", "absent"
"""What stands where a criterion would: the candidate is chosen; it takes no part."""


@dataclass(frozen=True, slots=True)
class VerdictChange:
    """A candidate whose verdict changed: from and to the first criterion that skips it, or `chosen`; with the reasons."""

    name: str
    before: str
    after: str
    why_before: str = ""
    why_after: str = ""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Before and after the edits; without edits `after` is None. `ask`: what was asked before them.

    `jobs`, where a nucleus is chosen: what the job broker says of every queue as if it were one of the nucleus, which is the hint
    that the choice hears; `jobs_after` the same after the edits.
    """

    ask: Ask
    before: Explanation
    after: Explanation | None
    edits: tuple[EditResult, ...]
    changed: tuple[VerdictChange, ...]
    jobs: Explanation | None = None
    jobs_after: Explanation | None = None

    def to_document(self) -> dict[str, Any]:
        """The same as JSON data, without the ask."""
        return {
            "before": self.before.to_document(),
            "after": self.after.to_document() if self.after else None,
            "edits": [{"name": e.name, "before": thawed(e.before), "after": thawed(e.after)} for e in self.edits],
            "changed": [asdict(change) for change in self.changed],
            "jobs": self.jobs.to_document() if self.jobs else None,
            "jobs_after": self.jobs_after.to_document() if self.jobs_after else None,
        }


def what_if(request: DecisionRequest, edits: Sequence[Edit] = ()) -> WhatIf:
    """Decide on the grid as it is and as edited. BadEdits with every edit that cannot be made."""
    before, jobs = _explained(request)
    if not edits:
        return WhatIf(request.ask, before, None, (), (), jobs)
    edited, results = edited_request(request, edits)
    after, jobs_after = _explained(edited)
    return WhatIf(request.ask, before, after, results, tuple(changes(before, after)), jobs, jobs_after)


def edited_request(request: DecisionRequest, edits: Sequence[Edit]) -> tuple[DecisionRequest, tuple[EditResult, ...]]:
    """The request after the edits, and what these changed. BadEdits."""
    snapshot, _, ask, policy, config, _ = request
    policies = [policy, config.job_broker(ask)] if policy.activity == NUCLEUS else [policy]
    new_ask, of_task, task_faults = edited_ask(ask, edits)
    new_grid, of_grid, grid_faults = edited_grid(snapshot.grid, edits)
    new_config, of_config, config_faults = edited_config(config, policies, ask.vo, edits)
    if faults := [*task_faults, *grid_faults, *config_faults]:
        raise BadEdits(faults)
    if of_grid:
        snapshot = GridSnapshot(new_grid, snapshot.facts, snapshot.now, snapshot.scope)
    order = {edit.name: i for i, edit in enumerate(edits)}
    results = sorted([*of_task, *of_grid, *of_config], key=lambda result: order[result.name])
    return request._replace(snapshot=snapshot, ask=new_ask, config=new_config), tuple(results)


def _explained(request: DecisionRequest) -> tuple[Explanation, Explanation | None]:
    """The decision in words; where a nucleus is chosen, that of the job broker too."""
    task_decision = decide_task(request)
    story = _explanation(task_decision.decision, task_decision.inputs, request.snapshot.now)
    if request.policy.activity != NUCLEUS:
        return story, None
    inputs = job_broker_inputs(request)
    return story, _explanation(decide(*inputs, request.seed), inputs, request.snapshot.now)


def _explanation(decision: PolicyDecision, inputs: DecisionInputs[Any], now: datetime) -> Explanation:
    return explain(decode(encode(decision, inputs.policy)), *inputs, now)


def changes(before: Explanation, after: Explanation) -> Iterator[VerdictChange]:
    """The candidates whose first criterion differs: those now chosen first, then those no longer, then by name."""
    old, new = _verdicts(before), _verdicts(after)
    rows = [
        VerdictChange(name, a[0], b[0], a[1], b[1])
        for name in sorted(old.keys() | new.keys())
        if (a := old.get(name, (ABSENT, "")))[0] != (b := new.get(name, (ABSENT, "")))[0]
    ]
    yield from sorted(rows, key=lambda change: (change.after != CHOSEN, change.before != CHOSEN, change.name))


def _verdicts(story: Explanation) -> Mapping[str, tuple[str, str]]:
    """Candidate -> chosen, or the first criterion that skips it, with the reason."""
    skipped = {skip.name: (skip.criterion, skip.reason) for skip in story.skipped}
    return skipped | {choice.name: (CHOSEN, f"weight {choice.weight:.4g}") for choice in story.chosen}
