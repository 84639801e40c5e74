"""The REST API as people read it: operations by subject, with parameters, body and answers, from the OpenAPI document.

Pure: a document in, plain rows out. Not here: the page (`monitoring.views.api`) and what the document says (the API's views).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

METHODS = ("get", "post", "put", "patch", "delete")
DEEPEST = 3
"""Fields of fields of fields are shown; what lies deeper is in the document itself."""
USUAL = {"200": "Done.", "201": "Made.", "202": "Taken, and being done.", "204": "Done; there is nothing to say."}
"""What a status says where the document says nothing."""
JSON_TYPES = ("application/json", "application/problem+json")

Document = Mapping[str, Any]


class Field(NamedTuple):
    """One parameter or field. `name` has the names of those that it lies in; `of`: where a parameter stands."""

    name: str
    kind: str
    required: bool
    about: str
    of: str = ""


class Operation(NamedTuple):
    """One method of one address. `example`: a body that is taken; None where there is no body, or no example."""

    id: str
    method: str
    path: str
    title: str
    about: str
    parameters: Sequence[Field]
    body: Sequence[Field]
    result: Sequence[Field]
    answers: Sequence[tuple[str, str]]
    example: Any = None


def subjects(document: Document) -> dict[str, list[Operation]]:
    """The operations of each subject, in the order of the document."""
    found: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                operation = methods[method]
                subject = (operation.get("tags") or ["others"])[0]
                found.setdefault(subject, []).append(_operation(document, path, method, operation))
    return dict(sorted(found.items()))


def _operation(document: Document, path: str, method: str, said: Document) -> Operation:
    body = _content(said.get("requestBody", {}))
    good: Document = next((answer for status, answer in said["responses"].items() if status.startswith("2")), {})
    return Operation(
        said["operationId"],
        method.upper(),
        path,
        said.get("summary") or said["operationId"].replace("_", " "),
        said.get("description", ""),
        [_parameter(document, parameter) for parameter in said.get("parameters", ())],
        list(_fields(document, body.get("schema", {}))),
        list(_fields(document, _content(good).get("schema", {}))),
        [(status, answer.get("description") or USUAL.get(status, "")) for status, answer in said["responses"].items()],
        _example(body),
    )


def _content(of: Document) -> Document:
    content = of.get("content", {})
    found: Document = next((content[kind] for kind in JSON_TYPES if kind in content), {})
    return found


def _example(content: Document) -> Any:
    if "example" in content:
        return content["example"]
    return next((example["value"] for example in content.get("examples", {}).values() if "value" in example), None)


def _parameter(document: Document, parameter: Document) -> Field:
    schema = parameter.get("schema", {})
    required = parameter.get("required", False)
    return Field(parameter["name"], _kind(document, schema), required, parameter.get("description", ""), parameter["in"])


def _fields(document: Document, schema: Document, before: str = "", depth: int = 1) -> Iterator[Field]:
    """The fields of an object, or of the objects of a list, each followed by its own."""
    whole = _whole(document, schema)
    if whole.get("type") == "array":
        yield from _fields(document, whole.get("items", {}), f"{before}[]" if before else before, depth)
        return
    required = whole.get("required", ())
    for name, each in whole.get("properties", {}).items():
        place = f"{before}.{name}" if before else name
        about = each.get("description") or _whole(document, each).get("description", "")
        yield Field(place, _kind(document, each), name in required, about)
        if depth < DEEPEST:
            yield from _fields(document, each, place, depth + 1)


def _whole(document: Document, schema: Document) -> Document:
    """The schema behind references and one that is wrapped."""
    if "$ref" in schema:
        part: Any = document
        for name in schema["$ref"].removeprefix("#/").split("/"):
            part = part[name]
        return _whole(document, part)
    if len(schema.get("allOf", ())) == 1:
        return {**_whole(document, schema["allOf"][0]), **{name: part for name, part in schema.items() if name != "allOf"}}
    return schema


def _kind(document: Document, schema: Document) -> str:
    """What a value is, in words: text, number, list of ..., one of ..."""
    whole = _whole(document, schema)
    choices = [each for each in whole.get("enum", ()) if each not in ("", None)]
    if choices:
        return f"one of {', '.join(map(str, choices))}"
    if several := whole.get("oneOf") or whole.get("anyOf"):
        return " or ".join(dict.fromkeys(_kind(document, each) for each in several))
    type_ = whole.get("type", "any")
    if isinstance(type_, list):
        return " or ".join(type_)
    if type_ == "array":
        return f"list of {_kind(document, whole.get('items', {}))}"
    kind = {"date-time": "time", "uuid": "UUID", "uri": "address"}.get(whole.get("format", ""), type_)
    return f"{kind} or null" if whole.get("nullable") else str(kind)
