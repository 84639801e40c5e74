"""Which rules of the split rule of a task may change while it lives, and its text then. Source: facts on commands 2.6."""

from __future__ import annotations

from collections.abc import Mapping

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.rules.jobs.lengths import TASK
from workqueues.rules.jobs.split_rule import changed as with_value
from workqueues.rules.jobs.split_rule import parse, without
from workqueues.rules.task_parameters import TASK_PARAMETERS, TaskParameters
from workqueues.rules.task_parameters.declaration import read

_NAMED = (
    "nFilesPerJob", "nGBPerJob", "nMaxFilesPerJob", "ignoreMissingInDS", "allowIncompleteInDS", "t1Weight", "nEsConsumers",
    "noInputPooling", "nEventsPerWorker", "nJumboJobs", "avoidVP", "allowInputLAN", "useLocalIO", "noLoopingCheck",
    "maxCoreCount", "onlyTagsForFC", "useZipToPin", "noAutoPause",
)  # fmt: skip
SIZES = ("nFilesPerJob", "nGBPerJob")
FILES = ("nFilesPerJob", "nMaxFilesPerJob")
BOUND_JOBS = (3, 4)
"""Values of groupBoundaryID that say by themselves how large a job is."""
_WORDED = {"allowInputLAN": ("IL", {"use": 1, "only": 2})}
"""Parameter -> its letters and the numbers of its words."""

LETTERS: Mapping[str, str] = {
    name: _WORDED[name][0] if name in _WORDED else TASK_PARAMETERS[name].code
    for name in _NAMED
    if TASK_PARAMETERS[name].supported
}
"""Parameter that may change and works -> its letters."""


def split_rule_after(text: str, rule: str, value: object) -> tuple[str, list[Problem]]:
    """The text with another value of one rule, without it for null, false and 0; or what is wrong with the wish."""
    by_letters = {letters: name for name, letters in LETTERS.items()}
    name = by_letters.get(rule, rule)
    if name not in LETTERS:
        near = nearest(rule, [*LETTERS, *by_letters])
        hint = f"; the nearest name is {near}" if near else ""
        return text, [problem("rule", "choice", f"{rule[:40]!r} may not change; there are {', '.join(LETTERS)}{hint}")]
    if value is None or (type(value) in (bool, int, float) and not value):
        return without(text, LETTERS[name]), []
    if value in ("", [], {}):  # so a submission says that nothing is wished; here it would take away what is there
        return text, [problem("value", "type", "must not be empty; false, 0 or null take the rule away")]
    parameters, problems = read(TaskParameters, {name: value})
    if wrong := [problem("value", p.rule, p.message) for p in problems if p.field == name]:
        return text, wrong
    if name in SIZES and parse(text).boundary in BOUND_JOBS:
        return text, [problem("value", "contradiction", f"{name} and groupBoundaryID do not go together here")]
    told = getattr(parameters, name)
    after = with_value(text, LETTERS[name], int(_WORDED[name][1][told] if name in _WORDED else told))
    rules = parse(after)
    if name in FILES and rules.files_per_job and rules.max_files_per_job and rules.files_per_job > rules.max_files_per_job:
        few, most = (f"{of} {n}" for of, n in zip(FILES, (rules.files_per_job, rules.max_files_per_job), strict=True))
        return text, [problem("value", "contradiction", f"{few} is above {most}")]
    if len(after) > TASK["split_rule"]:
        return text, [problem("value", "length", f"a split rule of {len(after)} characters, the limit is {TASK['split_rule']}")]
    return after, []
