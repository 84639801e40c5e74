"""The shape of an invariant, and the states that the statements compare with, taken from the machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from broker_site.foundation.kernel.machine import Machine
from brokerage.rules.facts.job_kind import BUILT_KINDS, JobKind
from brokerage.states import JOB, TRANSFER
from workqueues.rules.throttle.user_caps import CAUSE as USER_CAP
from workqueues.states import INPUT_DATASET, INPUT_TYPES, OUTPUT_DATASET, TASK


@dataclass(frozen=True, slots=True)
class Invariant:
    """One thing that must always hold. `says` tells it in a sentence; `sql` gives one row of text for each violation."""

    name: str
    says: str
    sql: str


def arrows(machine: Machine) -> list[str]:
    """Every move that the machine has, as `old>new`; `-` is the insertion."""
    return [f"{t.source}>{t.target}" for t in machine.transitions]


PARAMETERS: Mapping[str, Any] = {
    "task_final": sorted(TASK.final),
    "job_final": sorted(JOB.final),
    "leased": list(JOB.leased),
    "job_waiting": sorted(JOB.waiting),
    "known_kinds": [kind.value for kind in JobKind],
    "merge_kind": JobKind.MERGE.value,
    "ready_or_held": list(JOB.ready_or_held),
    "user_cap": USER_CAP,
    "built_kinds": [kind.value for kind in BUILT_KINDS],
    "input_types": list(INPUT_TYPES),
    "task_arrows": arrows(TASK),
    "job_arrows": arrows(JOB),
    "transfer_final": sorted(TRANSFER.final),
    "transfer_arrows": arrows(TRANSFER),
    "input_dataset_arrows": arrows(INPUT_DATASET),
    "output_dataset_arrows": arrows(OUTPUT_DATASET),
}
"""Named parameters of all statements."""
