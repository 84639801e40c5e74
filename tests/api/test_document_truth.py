"""What the OpenAPI document says of blanks, bodies and empty parameters holds, for every operation that it has."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator

from broker_site.foundation.kernel import clock
from broker_site.foundation.outside_data import NOT_BLANK
from tests.api.people import Person, faults, person
from tests.api.test_schemathesis import NEEDED_WITH_ANOTHER, OF_KINDS, known  # noqa: F401 - a fixture
from tests.builders import parameters

pytestmark = pytest.mark.django_db
DOCUMENT: Any = SchemaGenerator().get_schema(request=None, public=True)
Known = dict[str, Any]
BLANKS = ("", " ", "\x1f", "\x85\t", "\u2028", "\u3000")
OF_OTHERS = {name for names in OF_KINDS.values() for name in names if name != "tasks_create"}
"""Operations that users do not call."""


def operations(method: str) -> Iterator[tuple[str, Any]]:
    """Address and operation of those that users call."""
    for path, item in DOCUMENT["paths"].items():
        if method in item and item[method]["operationId"] not in OF_OTHERS and "child" not in str(item[method]["security"]):
            yield path, item[method]


def schema_of(operation: Any) -> Any:
    """Of the one form in which an operation takes its body: JSON, and of a draft YAML, which is a text."""
    (content,) = operation["requestBody"]["content"].values()
    schema = content["schema"]
    return DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def address(path: str, known: Known) -> str:  # noqa: F811
    return path.removeprefix("/api/v1/").format_map(defaultdict(lambda: 1, known))


@pytest.fixture
def ada(db: None) -> Person:
    """Who may submit: a superuser may not by that alone."""
    return person("ada", ("demo", "submitter"), ("demo", "operator"))


@pytest.fixture
def stopped_clock() -> Iterator[None]:
    """Answers with ages and spans of time are the same twice."""
    with clock.frozen(clock.now()):
        yield


@pytest.fixture
def boss(known: Known) -> Person:  # noqa: F811
    roles = [("demo", role) for role in ("submitter", "operator", "production")]
    return person("boss", *roles, superuser=True)


def test_the_pattern_of_what_is_not_blank_holds_for_every_character() -> None:
    wrong = [n for n in range(sys.maxunicode + 1) if bool(re.search(NOT_BLANK, chr(n))) != bool(chr(n).strip())]
    assert wrong == []


@pytest.mark.parametrize("blank", BLANKS)
def test_a_blank_name_is_refused_by_its_place_and_the_document_says_so(boss: Person, ada: Person, blank: str) -> None:
    recover = {"vo": "demo", "name": "mc23.input", "files": ["good", blank]}
    for path, body, field, rule in (
        ("datasets/recover/", recover, "files.1", "blank"),
        ("tokens/", {"roles": [blank]}, "roles.0", "blank"),
        ("read-grants/", {"vo": blank, "pattern": "a", "grantee_kind": "user", "grantee": "eve"}, "vo", "blank"),
        ("tasks/", parameters(taskName=blank), "taskName", "required"),
        ("bulk/", {"of": "tasks", "act": "kill", "filter": {"status": blank}, "count": 1}, "filter.status", "blank"),
        ("bulk/", {"of": "tasks", "act": "kill", "filter": {"id": [1, blank]}, "count": 1}, "filter.id", "blank"),
    ):
        assert (field, rule) in faults((ada if path == "tasks/" else boss).post(path, body))
    bodies = {
        path: schema_of(operation).get("properties") for path, operation in operations("post") if "requestBody" in operation
    }
    for told in (
        bodies["/api/v1/datasets/recover/"]["files"]["items"],
        bodies["/api/v1/tokens/"]["roles"]["items"],
        bodies["/api/v1/read-grants/"]["vo"],
        bodies["/api/v1/tasks/"]["taskName"],
        bodies["/api/v1/bulk/"]["filter"]["additionalProperties"]["anyOf"][0],
    ):
        assert not re.search(told["pattern"], blank), told
        assert re.search(told["pattern"], f"{blank}a"), told


def test_values_of_a_filter_of_an_act_are_texts_numbers_or_lists_of_them(boss: Person) -> None:
    values: tuple[Any, ...] = ({"a": 1}, [[1]], [{}])
    for value in values:
        asked = {"of": "tasks", "act": "kill", "filter": {"id": value}, "count": 1}
        assert faults(boss.post("bulk/", asked)) == {("filter.id", "type")}


SUBMITTED = ("/api/v1/tasks/", "/api/v1/tasks/check/")
"""What takes a submitter."""


def test_a_body_is_required_where_something_in_it_is(boss: Person, ada: Person, known: Known, subtests: Any) -> None:  # noqa: F811
    """Without a body it is refused with what is missing; where the document lets it be left out it is not refused for that."""
    for path, operation in operations("post"):
        with subtests.test(path=path):
            answer = (ada if path in SUBMITTED else boss).post(address(path, known))
            missing = {field for field, rule in faults(answer) if rule == "required"} if answer.status_code == 422 else set()
            if operation.get("requestBody", {}).get("required"):
                assert missing >= set(schema_of(operation)["required"]) or "There is no body" in answer.json()["detail"]
            else:
                assert "requestBody" not in operation or "required" not in schema_of(operation)
                assert answer.status_code != 400 and missing <= NEEDED_WITH_ANOTHER, answer.content


@pytest.mark.usefixtures("stopped_clock")
def test_an_empty_parameter_is_as_one_that_is_left_out(boss: Person, known: Known, subtests: Any) -> None:  # noqa: F811
    for path, operation in operations("get"):
        at = address(path, known)
        needed = {p["name"]: "x" for p in operation.get("parameters", ()) if p["in"] == "query" and p.get("required")}
        plain = boss.get(at, **needed)
        for parameter in operation.get("parameters", ()):
            if parameter["in"] != "query":
                continue
            with subtests.test(path=path, name=parameter["name"]):
                if parameter.get("required"):
                    assert "allowEmptyValue" not in parameter
                    continue
                assert parameter["allowEmptyValue"] is True
                empty = boss.get(at, **needed, **{parameter["name"]: ""})
                assert (empty.status_code, {**empty.json(), "trace_id": ""}) == (
                    plain.status_code,
                    {**plain.json(), "trace_id": ""},
                )


def test_a_needed_parameter_that_is_empty_is_missing(boss: Person) -> None:
    assert faults(boss.get("transfers/why/", dataset="", lfn="a"), 400) == {("dataset", "required")}
    assert faults(boss.get("transfers/why/", lfn="a"), 400) == {("dataset", "required")}


@pytest.mark.parametrize("query", ["user_name", "status=", "status=&user=", "cursor=x", "?limit=5", "status=%20", "window="])
def test_a_view_without_a_filter_is_refused_for_that(boss: Person, query: str) -> None:
    asked = {"list": "tasks", "name": "mine too", "query": query}
    assert faults(boss.post("saved-views/", asked)) == {("query", "none")}
