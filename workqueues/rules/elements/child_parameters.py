"""The parameters of the task that an element becomes at a child broker, made of those of its task (decisions J2, J4). Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workqueues.rules.jobs.pseudo_files import number_of
from workqueues.states import OUTPUT_TYPES

OF_THE_PARENT = (
    "workTo", "team", "trustSitelists", "trustPUSitelists", "includedSite", "excludedSite", "gshare", "workQueueName",
    "parentTaskName", "waitInput", "noWaitParent", "uniqueTaskName", "allowTaskDuplication", "reqID", "goal", "termCondition",
    "failWhenGoalUnreached", "useExhausted", "destination", "cloud", "nFiles", "nSkipFiles", "nEvents", "skipFilesUsedBy",
    "useInFilesWithNewAttemptNr", "currentPriority", "userName", "outputPostProcessing", "inputPreStaging", "toStaging",
    "panda_data_carousel", "remove_rule_when_done", "nChunksToWait", "respectLB", "releasePerLB", "stations", "official",
)  # fmt: skip
"""What the parent sees to, or what means its own grid: the child's task does not say it."""
SEEDS_OF_CHILDREN = 500_000_000
"""Seeds of elements begin behind this, those of the parent's own jobs before: they never meet."""


@dataclass(frozen=True, slots=True)
class ElementFacts:
    """What makes the parameters of a task those of an element of it.

    `name`: of the child's task; `dataset`: its input, `files`: those of it that the element has, in their order, records of a
    task without input by their names; `n_events`: of all of them, None: not known; `first_event`: of the first record, from 1;
    `serial_first`: the first serial number of outputs; `tries`: that are left to each file; `measured`: parameters that were
    measured at the parent.
    """

    name: str
    priority: int
    dataset: str
    files: Sequence[str]
    n_events: int | None
    first_event: int
    is_records: bool
    serial_first: int
    tries: int
    measured: Mapping[str, Any]


def child_parameters(params: Mapping[str, Any], element: ElementFacts) -> dict[str, Any]:
    """The parameters as the child submits them, but for the queues of its own grid."""
    made = {name: copy.deepcopy(value) for name, value in params.items() if name not in OF_THE_PARENT}
    made |= {
        **element.measured,
        "taskName": element.name,
        "taskPriority": element.priority,
        "skipScout": True,
        "maxAttempt": element.tries,
        "disableAutoFinish": True,
        "noAutoPause": True,
    }
    made.pop("dsForIN", None)
    if element.is_records:
        made |= {"nEvents": element.n_events} if element.n_events else {"nFiles": len(element.files)}
        made["jobParameters"] = _with_sequence(made.get("jobParameters"))
    for item in _items(made):
        _with_numbers(item, element)
        if _reads(item, element):
            item["dataset"], item["files"] = element.dataset, list(element.files)
    return made


def _with_sequence(items: Any) -> list[Any]:
    """The items, with one that numbers the records, which are then those of the parent."""
    listed = list(items or ())
    if any(isinstance(item, dict) and item.get("param_type") == "pseudo_input" for item in listed):
        return listed
    hidden = {"type": "template", "param_type": "pseudo_input", "dataset": "seq_number", "value": "${SEQNUMBER}", "hidden": True}
    return [*listed, hidden]


def _items(params: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All items that have numbers or datasets."""
    logs = params.get("log")
    for field in (params.get("jobParameters"), logs if isinstance(logs, list) else [logs], [params.get("log_merge")]):
        yield from (item for item in field or () if isinstance(item, dict))


def _with_numbers(item: dict[str, Any], element: ElementFacts) -> None:
    """Serial numbers, seeds and records of this element begin where nobody else's do."""
    kind, value = item.get("param_type"), str(item.get("value", ""))
    if kind in OUTPUT_TYPES:
        item["offset"] = element.serial_first - 1
        item.pop("destination", None)
    elif kind == "number" and "${RNDMSEED" in value:
        item["offset"] = int(item.get("offset") or 0) + SEEDS_OF_CHILDREN + element.serial_first - 1
    elif element.is_records and kind == "number" and "${FIRSTEVENT" in value:
        item["offset"] = int(item.get("offset") or 0) + element.first_event - 1
    elif element.is_records and kind == "pseudo_input":
        item["offset"] = number_of(element.files[0]) - 1


def _reads(item: Mapping[str, Any], element: ElementFacts) -> bool:
    """Whether it is the item of the input of which the element has files."""
    if element.is_records or item.get("param_type") != "input":
        return False
    names = [name.strip() for name in str(item.get("dataset", "")).split(",")]
    return element.dataset in names or any(name.endswith(f":{element.dataset}") for name in names)
