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
    "skipShortInput", "skipShortOutput", "period", "periodJobs", "periodUntil", "preproSpec", "skipFilesUsedBy",
    "releasePerLB", "workflowHoldup", "ignoreMissingInDS",
)  # fmt: skip
"""What the new task does not take over: its input is known, and all of it is wanted."""

WHOLE_INPUT = ("nFiles", "nEvents")
"""Which part of an input is wanted; of a task without input they say how many records there are."""

TEMPLATES = ("instantiateTmpl", "instantiateTmplSite")
"""What makes datasets of templates; the new task writes to the dataset that was made, and to others by their names."""

CANNOT = {"mergeOutput": "its files were merged"}
"""Parameters of tasks whose outputs cannot be made again yet, and why."""


def cannot_recover(params: Mapping[str, Any]) -> str:
    """Why outputs of a task with these parameters cannot be made again; empty: they can."""
    return next((f"{why} ({name}), which is not supported yet" for name, why in CANNOT.items() if params.get(name)), "")


def recovery_parameters(
    params: Mapping[str, Any], *, vo: str, number: int, dataset: str, lost: list[str], template: str = ""
) -> dict[str, Any]:
    """Parameters of the task that makes the `lost` files of a dataset again; `number`: that of the old task. `template`: of which
    the dataset was made, if of one.

    Run again for one that was such a task itself, it keeps to one suffix for each.
    """
    suffix, names = f".recov{number}", {template or dataset: dataset}
    dropped = (*DROPPED, *TEMPLATES, *(() if params.get("noInput") else WHOLE_INPUT))
    kept = {name: value for name, value in params.items() if name not in dropped}
    for name in ("log", "log_merge"):
        if isinstance(kept.get(name), list):
            kept[name] = [_redirected(item, vo, names, suffix) for item in kept[name]]
        elif isinstance(kept.get(name), dict):
            kept[name] = _redirected(kept[name], vo, names, suffix)
    kept["jobParameters"] = [_redirected(item, vo, names, suffix) for item in params["jobParameters"]]
    return kept | {
        "taskName": f"{params['taskName']}{suffix}",
        "skipScout": True,
        "oldDatasetName": dataset,
        "lostFiles": lost,
    }


def _redirected(item: Any, vo: str, names: Mapping[str, str], suffix: str) -> Any:
    """The item; an output goes to the dataset of the lost files, or to one with the suffix. `names`: how the item of the lost
    files calls their dataset -> its name.
    """
    if not isinstance(item, dict) or item.get("param_type") not in OUTPUT_TYPES:
        return item
    name = str(item.get("dataset", "")).removeprefix(f"{vo}:")
    return item if names.get(name) == name else {**item, "dataset": names.get(name, f"{name}{suffix}")}
