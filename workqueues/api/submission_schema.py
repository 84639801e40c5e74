"""What the OpenAPI document says of a submission: the parameters of a task, and those that it cannot use yet."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel

from workqueues.rules.task_parameters import TASK_PARAMETERS, TaskParameters, not_yet
from workqueues.rules.task_parameters.declaration import parameters
from workqueues.rules.task_parameters.items import AnyItem

_TAKEN_OVER = (
    "type", "description", "enum", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern",
    "additionalProperties",
)  # fmt: skip
_NAMED_OTHERWISE = {"ge": "minimum", "le": "maximum"}
"""Words that pydantic leaves as they are where a function comes before the limit."""


@cache
def parameters_schema() -> dict[str, Any]:
    """JSON schema of a task's parameters: those that work today."""
    schema = TaskParameters.model_json_schema()
    return _openapi(schema, schema["$defs"])


def model_schema(model: type[BaseModel]) -> dict[str, Any]:
    """JSON schema of a body that a model declares."""
    schema = model.model_json_schema()
    return _openapi(schema, schema.get("$defs", {}))


def _openapi(schema: Mapping[str, Any], models: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of pydantic's in the words of OpenAPI 3.0, without null (it is as not given) and what does not work yet."""
    if "$ref" in schema:
        told = {"description": schema["description"]} if "description" in schema else {}
        return _openapi({**models[schema["$ref"].rpartition("/")[2]], **told}, models)
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if len(options) == 1:
        return _openapi({**options[0], **schema, "anyOf": ()}, models)
    document = {word: schema[word] for word in _TAKEN_OVER if word in schema}
    document |= {word: schema[ours] for ours, word in _NAMED_OTHERWISE.items() if ours in schema}
    if options:
        document["anyOf"] = [_openapi(option, models) for option in options]
    if "const" in schema:
        document["enum"] = [schema["const"]]
    if "items" in schema:
        document["items"] = _openapi(schema["items"], models)
    if (default := schema.get("default")) not in (None, "", []) and default >= document.get("minimum", default):
        document["default"] = default
    if "properties" in schema:
        document["properties"] = {name: _openapi(p, models) for name, p in schema["properties"].items() if "row" not in p}
        if required := [name for name, p in schema["properties"].items() if p.get("required")]:
            document["required"] = required
    return document


def _table() -> str:
    lines = ["| parameter | type | required | default | meaning |", "|---|---|---|---|---|"]
    for name, schema in parameters_schema()["properties"].items():
        p = TASK_PARAMETERS[name]
        kind = " or ".join(
            option.get("type", "any")
            for option in schema.get("anyOf", [schema])
            if "enum" not in option or option["type"] == "string"
        )
        default = f"`{schema['default']}`" if "default" in schema else ""
        lines.append(f"| {name} | {kind} | {'yes' if p.required else ''} | {default} | {p.doc} |")
    return "\n".join(lines)


def _items() -> str:
    """The types of items, and what each may say beside its type."""
    lines = ["| item | keys |", "|---|---|"]
    for model in get_args(AnyItem):
        keys = parameters(model)
        kind = keys.get("param_type", keys["type"]).default
        names = (p.name for p in keys.values() if p.supported and p.name not in ("type", "param_type"))
        lines.append(f"| {kind} | {', '.join(f'`{name}`' for name in names)} |")
    return "\n".join(lines)


def _later() -> str:
    return ", ".join(f"`{name}`" for name in not_yet())


SUBMIT = f"""The body is PanDA's task parameters. A body that breaks rules is answered with 422 and every fault at once, each
with its field, its rule and a sentence. The caller must be a submitter of the body's `vo`. The role `production` is needed
besides for `prodSourceLabel` managed, `taskType` prod, a priority above 1000, and a `userName` other than the caller's, which
must be that of a user with a role in the VO; without it the answer is 403 and names the field.

With the header `Idempotency-Key` the same body may be sent again, also at the same time: it is registered once, and every
repetition is answered with the first task and 200. The same key with another body is refused.

### Parameters

{_table()}

Some are needed with others: an input dataset in `jobParameters` unless `noInput` is set; `lostFiles` and `oldDatasetName` with
each other; `period` with `periodJobs` or `periodUntil`.

An item of `jobParameters` or `log` has the `type` `constant`, or the `type` `template` and the rest of these as its `param_type`:

{_items()}

### Known, not supported yet

A task that uses one of these is refused with the rule `not_supported_yet`.

{_later()}
"""
"""Description of the submission."""
