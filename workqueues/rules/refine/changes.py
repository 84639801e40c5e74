"""What may change of the parameters of a task that is run again, and what a change comes to. Pure.

Source: seed 001, "Task retry and resubmission"; facts on commands 2.6. Whatever the first run was cut by (nEventsPerJob before
all) is not among them: such a task is a new one. Not here: whether the caller may ask for it, and the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.rules.jobs.lengths import TASK
from workqueues.rules.jobs.sandbox import archive_of
from workqueues.rules.jobs.split_rule import rewritten
from workqueues.rules.refine.plan import planned_columns
from workqueues.rules.refine.types import TaskDocument
from workqueues.rules.refine.validate import read_task
from workqueues.rules.task_parameters import TASK_PARAMETERS, stream_of

CHANGEABLE = (
    "site", "cloud", "includedSite", "excludedSite", "nFilesPerJob", "nGBPerJob", "nFiles", "nEvents", "ignoreMissingInDS",
    "fixedSandbox", "sourceURL", "cliParams", "currentPriority", "ramCount", "forceStaged", "allowIncompleteInDS", "t1Weight",
    "nEsConsumers", "nMaxFilesPerJob", "noInputPooling", "nEventsPerWorker", "nJumboJobs", "avoidVP", "allowInputLAN",
    "useLocalIO", "noLoopingCheck", "maxCoreCount", "onlyTagsForFC", "useZipToPin", "noAutoPause",
)  # fmt: skip
"""Those of the document first, then those of practice; dsFor with a stream may change too. One that does not work yet is refused
as at a submission.
"""

FREE = ("uniqueTaskName", "allowTaskDuplication", "userName")
"""What a submission says of itself and not of the work: it may differ in a repeated one, whose owner is the same."""

LONGEST_VALUE = 60

READ_ONCE = ("nFiles", "nEvents")
"""What says how much of an input there is to read; so do further datasets of it."""


class ParameterChange(NamedTuple):
    """A parameter of which a task gets another value; None: it is not given."""

    name: str
    before: Any
    after: Any

    def sentence(self) -> str:
        """What changes, for the history."""
        if self.after is None:
            return f"{self.name} is taken away (was {_short(self.before)})"
        return f"{self.name} {_short(self.after)}" + ("" if self.before is None else f" (was {_short(self.before)})")


class Changed(NamedTuple):
    """The parameters as they will be, what differs, and the columns that follow; `problems`: then none of it holds."""

    params: Mapping[str, Any]
    differences: tuple[ParameterChange, ...] = ()
    columns: Mapping[str, Any] = MappingProxyType({})
    problems: tuple[Problem, ...] = ()

    def sentence(self) -> str:
        """All that changes, in one line; empty where nothing does."""
        return f"changed: {', '.join(d.sentence() for d in self.differences)}" if self.differences else ""


NOTHING = Changed({})
"""Nobody asked for changes."""


def for_the_next_reading(name: str) -> bool:
    """Whether a change of this parameter shows only when the inputs are read again."""
    return name in READ_ONCE or bool(stream_of(name))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


def differing(params: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """What makes these parameters those of `body`, a whole task: names with their new values, None where it does not give one.

    Two ways to say the same do not differ, nor does the archive of the sources, unless it is given as fixedSandbox: the sources
    stay those that they were.
    """
    archive = {"fixedSandbox": name} if (name := archive_of(params)) else {}
    old, new = read_task({**params, **archive}), read_task({**body, **archive})
    free = FREE if body.get("fixedSandbox") else (*FREE, "fixedSandbox", "sourceURL")
    differences = {}
    for name in dict.fromkeys([*params, *body]):
        before, after = params.get(name), body.get(name)
        if name in free or before == after or _same(name, old, new):
            continue
        differences[name] = after
    return differences


def _same(name: str, old: TaskDocument, new: TaskDocument) -> bool:
    if name not in TASK_PARAMETERS or name == "fixedSandbox" or old.problems or new.problems:
        return False
    if name in ("jobParameters", "log", "log_merge"):
        return old.items == new.items
    return bool(getattr(old.parameters, name) == getattr(new.parameters, name))


def change(params: Mapping[str, Any], changes: Mapping[str, Any], split_rule: str, *, path: str = "") -> Changed:
    """What these changes come to for a task with these parameters and this split rule; `path` stands before each name in
    problems.

    What the rules say of the rest of its parameters by now does not count: they were accepted.
    """
    after = {name: value for name, value in {**params, **changes}.items() if not (name in changes and value is None)}
    differences = tuple(
        ParameterChange(name, params.get(name), value) for name, value in changes.items() if params.get(name) != value
    )
    old, new = read_task(params), read_task(after)
    known = set(old.problems)
    problems = [
        *_refusals(differences, path),
        *(problem(path + p.field, p.rule, p.message) for p in new.problems if p not in known),
    ]
    if problems:
        return Changed(params, problems=tuple(problems))
    before, columns = planned_columns(old), planned_columns(new)
    moved = {name: value for name, value in columns.items() if before.get(name) != value}
    moved |= {name: "" if isinstance(value, str) else None for name, value in before.items() if name not in columns}
    if "split_rule" in moved:
        rule = rewritten(split_rule, str(before["split_rule"]), str(columns["split_rule"]))
        moved["split_rule"] = rule
        if len(rule) > TASK["split_rule"]:
            message = f"a split rule of {len(rule)} characters, the limit is {TASK['split_rule']}"
            return Changed(params, problems=(problem(path.removesuffix("."), "length", message),))
    return Changed(after, differences, moved)


def _refusals(differences: tuple[ParameterChange, ...], path: str) -> Iterator[Problem]:
    for name in (d.name for d in differences if not (d.name in CHANGEABLE or stream_of(d.name))):
        near = "" if name in TASK_PARAMETERS else nearest(name, CHANGEABLE)
        hint = f"; the nearest that may is {near}" if near else "; submit a new task"
        yield problem(path + name[:100], "unchangeable", f"may not change when a task is run again{hint}")
