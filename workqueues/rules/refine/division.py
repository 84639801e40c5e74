"""Whether the work of a task can be divided into elements that other brokers run, and who does it (rows W1, X5; decision J7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from workqueues.rules.jobs.dataset_attributes import read_attributes
from workqueues.rules.refine.contradictions import cuts_events
from workqueues.rules.refine.types import Item
from workqueues.rules.task_parameters import TaskParameters

WorkTo = Literal["own", "children", "first"]
OF_OWN_QUEUES = (
    "site",
    "nucleus",
    "period",
    "preproSpec",
    "lostFiles",
    "workflowHoldup",
    "useFileAsSourceLFN",
    "addNthFieldToLFN",
    "instantiateTmpl",
    "instantiateTmplSite",
    "minGranularity",
    "nEventsPerRange",
    "tgtNumEventsPerJob",
    "useRealNumEvents",
    "groupBoundaryID",
    "respectLB",
    "releasePerLB",
    "inputPreStaging",
    "toStaging",
    "panda_data_carousel",
)
"""Parameters that mean own queues, or that join what different elements would have."""


def undivided(task: TaskParameters, items: Sequence[Item]) -> Iterator[tuple[str, str]]:
    """Why the task cannot be divided into elements: the field, and a sentence for its owner."""
    for name in OF_OWN_QUEUES:
        if getattr(task, name):
            yield name, f"work of child brokers does not go with {name}"
    if cuts_events(task):
        yield "nEventsPerJob", "work of child brokers is cut at files: nEventsPerJob needs nEventsPerInputFile, and no rest"
    masters = [item for item in items if item.type == "input" and read_attributes(item.attributes).tracked]
    for item in masters[1:]:
        yield item.path, "work of child brokers has one input whose files are used once; others are pileup, repeat or nosplit"
    sequences = [item for item in items if item.type == "pseudo_input"]
    if sequences and masters:
        yield sequences[0].path, "work of child brokers has no numbered sequence beside its input"


def chosen(wanted: str, key: WorkTo, divided: bool) -> WorkTo:
    """Who does the work: as the task says, else as the key says, as far as it can be divided."""
    if wanted in ("own", "children", "first"):
        return wanted  # type: ignore[return-value]
    return key if divided else "own"
