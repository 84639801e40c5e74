"""The parameters of a task that makes lost outputs of another one again (decision D21). Pure.

Each job of it has what one job of the old task had, and gives its file the same name. What else that job wrote goes to
datasets of its own. Source: facts on workflows 7.3. Not here: which jobs these were (`queries.lost_outputs`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workqueues.states import OUTPUT_TYPES

DROPPED = (
    "parentTaskName", "noWaitParent", "runUntilClosed", "nChunksToWait", "noInputPooling", "waitInput", "allowEmptyInput",
    "uniqueTaskName", "allowTaskDuplication", "goal", "termCondition", "useExhausted", "failWhenGoalUnreached", "nScouts",
    "skipShortInput", "skipShortOutput", "period", "periodJobs", "periodUntil", "skipFilesUsedBy",
    "releasePerLB", "workflowHoldup", "ignoreMissingInDS",
)  # fmt: skip
"""What the new task does not take over: its input is known, and all of it is wanted."""

WHOLE_INPUT = ("nFiles", "nEvents")
"""Which part of an input is wanted; of a task without input they say how many records there are."""

CANNOT = {
    "mergeOutput": "its files were merged",
    "instantiateTmpl": "it instantiates templates",
    "instantiateTmplSite": "it instantiates templates",
    "useFileAsSourceLFN": "names of its files come from those of its inputs",
}
"""Parameters of tasks whose outputs cannot be made again yet, and why."""


def cannot_recover(params: Mapping[str, Any]) -> str:
    """Why outputs of a task with these parameters cannot be made again; empty: they can."""
    return next((f"{why} ({name}), which is not supported yet" for name, why in CANNOT.items() if params.get(name)), "")


def recovery_parameters(params: Mapping[str, Any], *, vo: str, number: int, dataset: str, lost: list[str]) -> dict[str, Any]:
    """Parameters of the task that makes the `lost` files of a dataset again; `number`: that of the old task.

    Run again for one that was such a task itself, it keeps to one suffix for each.
    """
    suffix = f".recov{number}"
    dropped = (*DROPPED, *(() if params.get("noInput") else WHOLE_INPUT))
    kept = {name: value for name, value in params.items() if name not in dropped}
    for name in ("log", "log_merge"):
        if isinstance(kept.get(name), list):
            kept[name] = [_redirected(item, vo, dataset, suffix) for item in kept[name]]
        elif isinstance(kept.get(name), dict):
            kept[name] = _redirected(kept[name], vo, dataset, suffix)
    kept["jobParameters"] = [_redirected(item, vo, dataset, suffix) for item in params["jobParameters"]]
    return kept | {
        "taskName": f"{params['taskName']}{suffix}",
        "skipScout": True,
        "oldDatasetName": dataset,
        "lostFiles": lost,
    }


def _redirected(item: Any, vo: str, dataset: str, suffix: str) -> Any:
    """The item; an output to another dataset than the one that lost files goes to one with the suffix."""
    if not isinstance(item, dict) or item.get("param_type") not in OUTPUT_TYPES:
        return item
    name = str(item.get("dataset", "")).removeprefix(f"{vo}:")
    return item if name == dataset else {**item, "dataset": f"{name}{suffix}"}
