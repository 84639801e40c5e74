"""Plain Django views in the OpenAPI document: their bodies and answers from the declarations by which they are read and made.

A view says what it tells with `tells`; address, parameters and tokens come from its route and its permission. REST framework's
views are documented by drf-spectacular alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

from broker_site.foundation.access.permissions import PERMISSIONS
from broker_site.foundation.access.routes import permission_of, routes
from broker_site.foundation.access.tokens import JOB_PREFIX, PREFIXES

View = TypeVar("View", bound=Callable[..., Any])
Schema = dict[str, Any]

OPERATION = "openapi_operation"
"""Attribute of a plain view that is in the document."""
PROBLEM_TYPE = "application/problem+json"
_REFUSALS = (400, 401, 403, 413, 415, 422, 429, 503)
_COMPONENTS = "#/components/schemas/"
_ARGUMENT = re.compile(r"<(?:(\w+):)?(\w+)>")
_TYPES = {"int": {"type": "integer"}}


@dataclass(frozen=True, slots=True)
class Operation:
    """What a plain view tells: how its body is read, what it answers by status (None: no body), and when it refuses."""

    summary: str
    body: tuple[Any, ...]
    answers: Mapping[int, tuple[str, Any]]
    refusals: tuple[int, ...]


def tells(
    summary: str, *body: Any, answers: Mapping[int, tuple[str, Any]], refusals: Sequence[int] = ()
) -> Callable[[View], View]:
    """Put a view that takes POST into the document.

    `body`: the dataclasses by which its body is read, which are one object. `answers`: status -> its meaning, and the type of
    the body. `refusals`: statuses beside those that every such view has.
    """
    operation = Operation(summary, body, answers, tuple(sorted({*_REFUSALS, *refusals})))

    def mark(view: View) -> View:
        view.__dict__[OPERATION] = operation
        return view

    return mark


def add_plain_operations(document: Schema, reasons: Mapping[int, str], urlconf: str | None = None) -> None:
    """Put every view of the URL conf that is marked into the document. ValueError: two components of one name."""
    for route in routes(urlconf):
        if (operation := getattr(route.callback, OPERATION, None)) is None:
            continue
        item = document["paths"].setdefault(_ARGUMENT.sub(r"{\2}", route.address), {})
        item["post"] = _told(operation, route.address, permission_of(route.callback, "POST"), document["components"], reasons)
        item["post"]["operationId"] = route.callback.__name__
        item["post"]["description"] = " ".join((route.callback.__doc__ or "").split())


def _told(operation: Operation, address: str, permission: str, components: Schema, reasons: Mapping[int, str]) -> Schema:
    answers: Schema = {}
    for status, (meaning, body) in operation.answers.items():
        content = {"content": {"application/json": {"schema": _schema((body,), "serialization", components)}}} if body else {}
        answers[str(status)] = {"description": meaning} | content
    for status in operation.refusals:
        problem = {PROBLEM_TYPE: {"schema": {"$ref": f"{_COMPONENTS}Problem"}}}
        answers[str(status)] = {"description": reasons[status], "content": problem}
    told: Schema = {"summary": operation.summary, "tags": [_tag(address)]}
    if names := _ARGUMENT.findall(address):
        told["parameters"] = [
            {"in": "path", "name": name, "required": True, "schema": _TYPES.get(kind, {"type": "string"})} for kind, name in names
        ]
    body = {"application/json": {"schema": _without_null(_schema(operation.body, "validation", components))}}
    return told | {
        "requestBody": {"content": body, "required": True},
        "security": [{kind: []} for kind in sorted(PERMISSIONS[permission].kinds)],
        "responses": answers,
    }


def _without_null(body: Schema) -> Schema:
    """Null is as good as a field that is left out: what need not be there may be null."""
    for name, told in body["properties"].items():
        if name not in body.get("required", ()):
            body["properties"][name] = ({"allOf": [told]} if "$ref" in told else told) | {"nullable": True}
    return body


def _tag(address: str) -> str:
    return address.removeprefix("/api/v1/").partition("/")[0]


def token_schemes() -> Schema:
    """How callers that are no users show who they are."""
    begins = PREFIXES | {"job": JOB_PREFIX}
    return {
        kind: {"type": "http", "scheme": "bearer", "description": f"The token of {words}; it begins with {begins[kind]}."}
        for kind, words in (("enrolment", "an enrolment"), ("pilot", "a pilot"), ("child", "a child broker"), ("job", "a job"))
    }


def _schema(kinds: Sequence[Any], mode: Any, components: Schema) -> Schema:
    """One object as these types declare it together; what they refer to is put among the components."""
    whole: Schema = {}
    for kind in kinds:
        part = _as_openapi(_adapter(kind).json_schema(ref_template=f"{_COMPONENTS}{{model}}", mode=mode))
        for name, component in part.pop("$defs", {}).items():
            if components["schemas"].setdefault(name, component) != component:
                raise ValueError(f"two components of the OpenAPI document are called {name}")
        whole = _joined(whole, part)
    return whole


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _joined(whole: Schema, part: Schema) -> Schema:
    both = dict(whole) | part
    if "properties" in whole:
        both["properties"] = whole["properties"] | part["properties"]
        both["required"] = [*whole.get("required", ()), *part.get("required", ())]
        both["description"] = whole.get("description", "") + "\n\n" + part.get("description", "")
    return both


def _as_openapi(schema: Any) -> Any:
    """A JSON schema of pydantic in the words of OpenAPI 3.0: no null type, no tuples, no constants, no titles."""
    if isinstance(schema, list):
        return [_as_openapi(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    told = {name: _members(name, value) for name, value in schema.items() if not (name == "title" and isinstance(value, str))}
    if "default" in told and told["default"] is None:
        del told["default"]
    for ours, word in (("ge", "minimum"), ("le", "maximum")):  # pydantic leaves them so where a function comes between
        if ours in told:
            told[word] = told.pop(ours)
    told.pop("propertyNames", None)
    if "const" in told:
        told["enum"] = [told.pop("const")]
    if "prefixItems" in told:
        told["items"] = told.pop("prefixItems")[0]
    if "anyOf" in told and {"type": "null"} in told["anyOf"]:
        others = [each for each in told.pop("anyOf") if each != {"type": "null"}]
        told |= others[0] if len(others) == 1 and "$ref" not in others[0] else {"anyOf": others}
        told["nullable"] = True
    return told


def _members(name: str, value: Any) -> Any:
    """Below `properties` and `$defs` stand names of ours, not words of the schema."""
    return {key: _as_openapi(each) for key, each in value.items()} if name in ("properties", "$defs") else _as_openapi(value)
