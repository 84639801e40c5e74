"""What the OpenAPI document tells of a submission: the parameters of a task, and those that it cannot use yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workqueues.rules.task_parameters import TASK_PARAMETERS, Parameter, not_yet

_KINDS: Mapping[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "int": {"type": "integer"},
    "number": {"type": "number"},
    "flag": {"type": "boolean"},
    "names": {"oneOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]},
    "texts": {"type": "array", "items": {"type": "string"}},
    "counts": {"oneOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "integer"}, {"type": "string"}]},
    "object": {"type": "object"},
    "text_or_object": {"oneOf": [{"type": "string"}, {"type": "object"}]},
    "any": {},
}


def _property(p: Parameter) -> dict[str, Any]:
    told = {**_KINDS[p.kind], "description": p.doc}
    if p.kind in ("int", "number"):
        told |= {"minimum": p.low, "maximum": p.high}
    if p.length:
        told["maxLength"] = p.length
    if p.choices:
        told["enum"] = list(p.choices)
    if p.default is not None:
        told["default"] = p.default
    return told


def parameters_schema() -> dict[str, Any]:
    """JSON schema of a task's parameters: those that work today."""
    return {
        "type": "object",
        "required": [p.name for p in TASK_PARAMETERS.values() if p.required],
        "properties": {p.name: _property(p) for p in TASK_PARAMETERS.values() if p.supported},
        "additionalProperties": False,
    }


def _table() -> str:
    lines = ["| parameter | type | required | default | meaning |", "|---|---|---|---|---|"]
    for p in TASK_PARAMETERS.values():
        if p.supported:
            note = f" Note: {p.note}." if p.note else ""
            default = "" if p.default is None else f"`{p.default}`"
            lines.append(f"| {p.name} | {p.kind} | {'yes' if p.required else ''} | {default} | {p.doc}{note} |")
    return "\n".join(lines)


def _later() -> str:
    return "\n".join(["| parameter | row |", "|---|---|", *(f"| {name} | {row} |" for name, row in not_yet().items())])


SUBMIT = f"""The body is PanDA's task parameters. A body that breaks rules is answered with 422 and every fault at once, each
with its field, its rule and a sentence. The caller must be a submitter of the body's `vo`; `userName` defaults to the caller, and
only an operator of the VO submits for others.

With the header `Idempotency-Key` the same body may be sent again, also at the same time: it is registered once, and every
repetition is answered with the first task and 200. The same key with another body is refused.

### Parameters

{_table()}

Items of `jobParameters` and `log` have `type` (`constant` or `template`), `value`, and, for templates, `param_type` (`input`,
`pseudo_input`, `number`, `output`, `log`), `dataset`, `offset`, `token`, `container`, `hidden`, `padding`, `allowNoOutput`,
`sourceName` (outputs), `num_records` (`pseudo_input`), and for inputs `attributes`, `ratio`, `eventRatio`, `nFilesPerJob`,
`random`, `reusable`, `usedup`, `indexConsistent`.

### Known, not supported yet

A task that uses one of these is refused with the rule `not_supported_yet` and the row whose issue builds it.

{_later()}
"""
"""Description of the submission."""
