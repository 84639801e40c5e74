"""What the brokerage would decide now, and what it would if something were different: a dry run, before and after. Pure.

Here: one decision on the world of the moment, the same after edits, and which candidates changed their verdict. Not here: reading
the edits (`edits`), the question that is asked now (`brokerage.queries.dry_run`). Nothing is written, whatever comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from broker_site.foundation.gdpconfig.texts import thawed
from brokerage.rules.decision.declare import Policy, policy_for
from brokerage.rules.decision.dry_run import activity_of, table_for
from brokerage.rules.decision.nucleus_hint import at_home
from brokerage.rules.decision.pipeline import decide
from brokerage.rules.decision.record import Record, config_of, decode, encode
from brokerage.rules.explain.edits import BadEdits, Edit, Edited, edited_ask, edited_config, edited_grid
from brokerage.rules.explain.explanation import Explanation, explain
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Columns
from brokerage.rules.world.grid_snapshot import GridSnapshot

Choose = Callable[[str, str], Policy]

CHOSEN, ABSENT = "chosen", "absent"
"""What stands where a criterion would: the candidate is chosen; it takes no part."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision that was not stored, with everything that it was taken on.

    `jobs`, where a nucleus is chosen: what the job broker says of every queue as if it were one of the nucleus, which is the hint
    that the choice hears.
    """

    policy: Policy
    ask: Ask
    columns: Columns
    config: Config
    record: Record
    told: Explanation
    jobs: Explanation | None = None


@dataclass(frozen=True, slots=True)
class Changed:
    """A candidate whose verdict changed: from and to the first criterion that skips it, or `chosen`; with the reasons."""

    name: str
    before: str
    after: str
    why_before: str = ""
    why_after: str = ""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Before and after the edits; without edits `after` is None. `jobs`, `jobs_after`: see `Decided.jobs`."""

    before: Explanation
    after: Explanation | None
    edits: tuple[Edited, ...]
    changed: tuple[Changed, ...]
    jobs: Explanation | None = None
    jobs_after: Explanation | None = None

    def to_document(self) -> dict[str, Any]:
        """The same as JSON data."""
        return {
            "before": self.before.to_document(),
            "after": self.after.to_document() if self.after else None,
            "edits": [{"name": e.name, "before": thawed(e.before), "after": thawed(e.after)} for e in self.edits],
            "changed": [asdict(change) for change in self.changed],
            "jobs": self.jobs.to_document() if self.jobs else None,
            "jobs_after": self.jobs_after.to_document() if self.jobs_after else None,
        }


def decided_now(
    policy: Policy, ask: Ask, world: GridSnapshot, config_for: Callable[[Policy], Config], seed: str, choose: Choose = policy_for
) -> Decided:
    """The decision on the world as it is, told. `choose`: VO and activity to the policy of the job broker."""
    ask = world.completed(ask)
    columns, config = table_for(policy, ask, world, config_for, choose), config_of(policy, config_for(policy))
    record = decode(encode(decide(policy, ask, columns, config, seed), policy))
    told = explain(record, policy, ask, columns, config, world.now)
    jobs = _jobs(choose(ask.vo, activity_of(ask.prod_source_label)), ask, world, config_for, seed) if nuclear(policy) else None
    return Decided(policy, ask, columns, config, record, told, jobs)


def nuclear(policy: Policy) -> bool:
    """Whether it chooses a nucleus."""
    return policy.activity == "nucleus"


def _jobs(policy: Policy, ask: Ask, world: GridSnapshot, config_for: Callable[[Policy], Config], seed: str) -> Explanation:
    """The decision of the job broker while the nucleus is not chosen."""
    queues, config = at_home(world.queues(ask)), config_of(policy, config_for(policy))
    asked = replace(ask, nucleus=None)
    record = decode(encode(decide(policy, asked, queues, config, seed), policy))
    return explain(record, policy, asked, queues, config, world.now)


def what_if(
    policy: Policy,
    ask: Ask,
    world: GridSnapshot,
    config_for: Callable[[Policy], Config],
    edits: Sequence[Edit],
    seed: str = "",
    choose: Choose = policy_for,
) -> WhatIf:
    """Decide on the world as it is and as edited. BadEdits with every edit that cannot be made."""
    before = decided_now(policy, ask, world, config_for, seed, choose)
    if not edits:
        return WhatIf(before.told, None, (), (), before.jobs)
    after, done = edited_question(policy, ask, world, config_for, edits, seed, choose)
    changed = tuple(changes(before.told, after.told))
    return WhatIf(before.told, after.told, done, changed, before.jobs, after.jobs)


def edited_question(
    policy: Policy,
    ask: Ask,
    world: GridSnapshot,
    config_for: Callable[[Policy], Config],
    edits: Sequence[Edit],
    seed: str,
    choose: Choose = policy_for,
) -> tuple[Decided, tuple[Edited, ...]]:
    """The decision after the edits, and what these changed. BadEdits."""
    asked = [policy]
    if nuclear(policy):
        asked.append(choose(ask.vo, activity_of(ask.prod_source_label)))
    new_ask, of_task, task_faults = edited_ask(ask, edits)
    new_grid, of_grid, grid_faults = edited_grid(world.grid, edits)
    new_config, of_config, config_faults = edited_config(asked, config_for, edits)
    if faults := [*task_faults, *grid_faults, *config_faults]:
        raise BadEdits(faults)
    edited = GridSnapshot(new_grid, world.facts, world.now, world.scope) if of_grid else world
    order = {edit.name: i for i, edit in enumerate(edits)}
    done = sorted([*of_task, *of_grid, *of_config], key=lambda edit: order[edit.name])
    return decided_now(policy, new_ask, edited, new_config, seed, choose), tuple(done)


def changes(before: Explanation, after: Explanation) -> Iterator[Changed]:
    """The candidates whose first criterion differs: those now chosen first, then those no longer, then by name."""
    old, new = _verdicts(before), _verdicts(after)
    rows = [
        Changed(name, a[0], b[0], a[1], b[1])
        for name in sorted(old.keys() | new.keys())
        if (a := old.get(name, (ABSENT, "")))[0] != (b := new.get(name, (ABSENT, "")))[0]
    ]
    yield from sorted(rows, key=lambda change: (change.after != CHOSEN, change.before != CHOSEN, change.name))


def _verdicts(told: Explanation) -> Mapping[str, tuple[str, str]]:
    """Candidate -> chosen, or the first criterion that skips it, with the reason."""
    found = {skip.name: (skip.criterion, skip.reason) for skip in told.skipped}
    return found | {choice.name: (CHOSEN, f"weight {choice.weight:.4g}") for choice in told.chosen}
