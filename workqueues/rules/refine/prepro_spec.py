"""What a task says of its preprocessing step (preproSpec, row J26), by itself and beside other parameters.

Source: facts on workflows 7.7, on task parameters 2.1 and 2.2. Not here: what its result fills in (`filling`), when it is due.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from broker_site.foundation.outside_data import found
from workqueues.rules.jobs.activity import activity_of
from workqueues.rules.jobs.job_parameters import ParametersTemplate
from workqueues.rules.jobs.lengths import TASK
from workqueues.rules.jobs.placeholders import TASK_ID, MalformedText
from workqueues.rules.task_parameters import TaskParameters

Faults = Iterator[tuple[str, str, str]]
KEYS = ("transPath", "jobParameters", "prodSourceLabel")
PLACEHOLDERS = frozenset({"ATTEMPTNR", TASK_ID})
"""What the parameters of the step's job know: it reads no files, and only its pilot writes one, its log."""


def check_prepro_spec(task: TaskParameters) -> Faults:
    """All that is wrong with the step of the task, if it wants one."""
    spec = task.preproSpec
    if not spec:
        return
    for key, value in spec.items():
        if key not in KEYS:
            yield f"preproSpec.{key[:100]}", "unknown", f"unknown key of preproSpec; it has {', '.join(KEYS)}"
        elif not isinstance(value, str | None):
            yield f"preproSpec.{key}", "type", f"expected a text, found {found(value)}"
    if activity_of(task.prodSourceLabel) == "production":
        label = task.prodSourceLabel[:40] or "which is absent"
        yield "preproSpec", "contradiction", f"production has no preprocessing step, and the label {label} is production"
    if task.lostFiles:
        yield "preproSpec", "contradiction", "lostFiles says what the task makes again, and there is nothing to fill in"
    yield from _transformation(spec.get("transPath"))
    yield from _parameters(spec.get("jobParameters"))


def _transformation(path: object) -> Faults:
    field = "preproSpec.transPath"
    if not path:
        yield field, "required", "must be given: the transformation whose result fills in parameters"
    elif isinstance(path, str):
        if path.startswith("/") or ".." in path.split("/"):
            yield field, "format", "expected a path below the software area, without '..'"
        if len(path) > TASK["trans_path"]:
            yield field, "length", f"{len(path)} characters, the limit is {TASK['trans_path']}"


def _parameters(text: object) -> Faults:
    field = "preproSpec.jobParameters"
    try:
        names = ParametersTemplate(text).names if isinstance(text, str) else frozenset[str]()
    except MalformedText as wrong:
        yield field, "template", str(wrong)
        return
    for name in sorted(names - PLACEHOLDERS):
        yield field, "template", f"unknown placeholder {name}; the step's job knows {', '.join(sorted(PLACEHOLDERS))}"


def step_label(spec: Mapping[str, object]) -> str:
    """The source label that the specification names; empty where it names none."""
    label = spec.get("prodSourceLabel")
    return label if isinstance(label, str) else ""
