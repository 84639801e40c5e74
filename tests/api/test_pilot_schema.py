"""The verbs of pilots in the OpenAPI document: each of them, under its own token, and true to what is read and answered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import jsonschema  # type: ignore[import-untyped]
import pytest
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from broker_site.foundation.access.credentials import issue_enrolment
from broker_site.foundation.access.permissions import PERMISSIONS
from broker_site.foundation.access.routes import MARK
from brokerage.api.matching import MATCHING
from brokerage.api.pilots import REGISTERING
from brokerage.api.reports import REPORTING
from brokerage.api.urls import pilot_urlpatterns, urlpatterns
from brokerage.queries.pilots import QUEUES
from brokerage.queries.waiting import WAITING
from brokerage.rules.dispatch.pilot_messages import read_ask
from tests.builders import grid, parameters, submitted
from tests.flow.steps import run_agents

ROOT = Path(__file__).resolve().parents[2]
PROTOCOL = ROOT / "docs" / "reference" / "pilot-protocol.md"
ADVERTISING = next(pattern for pattern in urlpatterns if pattern.name == "site-advertisement")
"""The verb of sites; it goes the long way, as people's requests do."""
SECTION = re.compile(r"^## .*`POST (/api/v1/[^`]+)`$")
COUNTED = {"counted_at": "2026-01-01T10:00:00Z", "current_jobs": 1, "current_submitting_jobs": 0}
REQUEST = "0d1c0c0e-6a44-4b1c-9c0e-2f5f3f0e1a11"


class Example(NamedTuple):
    """A JSON block of the page on the wire: of which verb, and the status that it answers (0: it is a body)."""

    path: str
    status: int
    text: str


def examples() -> Iterator[Example]:
    for section in re.split(r"^(?=## )", PROTOCOL.read_text(encoding="utf-8"), flags=re.MULTILINE):
        if (heading := SECTION.match(section.splitlines()[0])) is None:
            continue
        status = 0
        for block in re.split(r"^```json\n", section, flags=re.MULTILINE):
            text, _, after = block.partition("\n```\n") if block is not section and block[:1] == "{" else ("", "", block)
            if text:
                yield Example(re.sub(r"<(\w+)>", r"{\1}", heading[1].replace("<id>", "<job_id>")), status, text)
            answers = re.findall(r"Answer (2\d\d)\b(?! with `Retry)", after)
            status = int(answers[-1]) if answers else 0


@cache
def document() -> dict[str, Any]:
    made: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return made


def address(pattern: Any) -> str:
    """The address of a route as the document writes it."""
    return "/api/v1/" + re.sub(r"<\w+:(\w+)>", r"{\1}", str(pattern.pattern))


def operation(path: str) -> dict[str, Any]:
    found: dict[str, Any] = document()["paths"][path]["post"]
    return found


def as_json_schema(told: Any) -> Any:
    """A schema of OpenAPI 3.0 as JSON Schema has it: what is nullable may be null."""
    if isinstance(told, list):
        return [as_json_schema(each) for each in told]
    if not isinstance(told, dict):
        return told
    plain = {name: as_json_schema(value) for name, value in told.items() if name != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if told.get("nullable") is True else plain


def faults(schema: dict[str, Any], value: Any) -> list[str]:
    whole = as_json_schema(schema | {"components": document()["components"]})
    return [error.message for error in jsonschema.Draft202012Validator(whole).iter_errors(value)]


def body_schema(path: str) -> dict[str, Any]:
    found: dict[str, Any] = operation(path)["requestBody"]["content"]["application/json"]["schema"]
    return found


def answer_schema(path: str, status: int) -> dict[str, Any]:
    found: dict[str, Any] = operation(path)["responses"][str(status)]["content"]["application/json"]["schema"]
    return found


@pytest.mark.parametrize("pattern", pilot_urlpatterns, ids=lambda pattern: str(pattern.name))
def test_each_verb_of_pilots_is_in_it_with_body_and_answer_and_asks_for_the_token_of_its_kind(pattern: Any) -> None:
    told = operation(address(pattern))
    kinds = PERMISSIONS[getattr(pattern.callback, MARK)].kinds
    assert told["security"] == [{kind: []} for kind in kinds]
    assert kinds <= set(document()["components"]["securitySchemes"])
    assert told["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert {"400", "401", "403", "413", "415", "422", "429", "503"} <= set(told["responses"])
    assert {"200", "201"} & set(told["responses"])
    assert told["responses"]["422"]["content"]["application/problem+json"]["schema"] == {"$ref": "#/components/schemas/Problem"}
    assert told["description"]


def test_every_verb_has_examples_on_the_page_of_the_wire_for_body_and_answer() -> None:
    found = {(example.path, example.status > 0) for example in examples()}
    assert found == {(address(pattern), answer) for pattern in (*pilot_urlpatterns, ADVERTISING) for answer in (True, False)}


def test_a_site_advertises_itself_under_the_token_of_an_enrolment() -> None:
    told = operation(address(ADVERTISING))
    assert told["security"] == [{"enrolment": []}]
    assert {"200", "400", "401", "403", "404", "409", "422", "429"} <= set(told["responses"])
    assert told["responses"]["422"]["content"]["application/problem+json"]["schema"] == {"$ref": "#/components/schemas/Problem"}


@pytest.mark.parametrize("example", [*examples()], ids=lambda example: f"{example.path} {example.status or 'body'}")
def test_the_examples_of_the_page_are_as_it_says(example: Example) -> None:
    schema = answer_schema(example.path, example.status) if example.status else body_schema(example.path)
    assert faults(schema, json.loads(example.text)) == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/pilots/", {"queue": "ALPHA", "host": "wn7"}),
        ("/api/v1/pilots/", {"queue": "ALPHA", "host": "wn7", "slot": "s", "cores": 0}),
        ("/api/v1/pilots/match/", {"cores": 1}),
        ("/api/v1/pilots/match/", {"request": REQUEST, "cpu_time_s": -1}),
        ("/api/v1/pilots/match/", {"request": REQUEST, "tags": ["x" * 65]}),
        ("/api/v1/pilots/match/", {"request": REQUEST, "tags": [f"T{n}" for n in range(1001)]}),
        ("/api/v1/pilots/match/", {"request": REQUEST, "n": 101}),
        ("/api/v1/pilots/settled/", {"jobs": [[1]]}),
        ("/api/v1/pilots/reports/", {"jobs": [{"status": "running"}]}),
        ("/api/v1/pilots/reports/", {"jobs": []}),
        ("/api/v1/jobs/{job_id}/heartbeat/", {"status": "asleep"}),
        ("/api/v1/jobs/{job_id}/report/", {"status": "finished", "outputs": [{"lfn": "a"}]}),
        ("/api/v1/jobs/{job_id}/report/", {"status": "finished", "metrics": {"cpu_s": []}}),
        ("/api/v1/jobs/{job_id}/report/", {"status": "failed", "error": "crash"}),
        ("/api/v1/sites/{site}/advertisement/", {"current_jobs": 1, "current_submitting_jobs": 0}),
        ("/api/v1/sites/{site}/advertisement/", {**COUNTED, "max_jobs": -1}),
        ("/api/v1/sites/{site}/advertisement/", {**COUNTED, "kind": "odd"}),
        ("/api/v1/sites/{site}/advertisement/", {**COUNTED, "stations": ["st"] * 1001}),
    ],
)
def test_it_refuses_what_the_verbs_refuse(path: str, body: dict[str, Any]) -> None:
    assert faults(body_schema(path), body)


def test_it_takes_the_ask_that_the_verb_takes() -> None:
    ask = {"request": REQUEST, "tags": "GPU", "required_tags": ["GPU"], "site": None, "platform": ["el9"], "SubmitPool": "wms"}
    assert faults(body_schema("/api/v1/pilots/match/"), ask) == []
    assert read_ask(ask).unknown == ("SubmitPool",)


@pytest.mark.django_db
def test_real_answers_are_as_it_says(tmp_path: Path) -> None:
    grid("ALPHA", path=str(tmp_path))
    submitted(parameters(nEvents=10, nEventsPerJob=10, site="ALPHA"))
    run_agents()
    for kept in (REGISTERING, MATCHING, REPORTING, WAITING, QUEUES):
        kept.forget()
    registered = _posted("/api/v1/pilots/", issue_enrolment("ALPHA").text, {"queue": "ALPHA", "host": "wn7", "slot": "s1"})
    matched = _posted("/api/v1/pilots/match/", registered["token"], {"request": REQUEST})
    job = matched["job"]
    assert job["outputs"]
    why = _posted("/api/v1/pilots/match/", registered["token"], {"request": str(uuid4()), "explain": True})["nothing"]
    assert why["text"]
    verb = "/api/v1/jobs/{job_id}/"
    _posted(verb + "heartbeat/", job["token"], {"status": "running"}, job["id"])
    _posted("/api/v1/pilots/reports/", registered["token"], {"jobs": [{"token": job["token"], "status": "running"}]})
    _posted(verb + "report/", job["token"], {"status": "failed", "exit_code": 1}, job["id"])
    settled = _posted("/api/v1/pilots/settled/", registered["token"], {"jobs": [[job["id"], job["epoch"]]]})
    assert settled["outcomes"][0]["job_id"] == job["id"]


def _posted(path: str, token: str, body: dict[str, Any], job_id: int = 0) -> Any:
    """The answer to a call that must go well, held against the document."""
    assert faults(body_schema(path), body) == []
    headers = {"Authorization": f"Bearer {token}"}
    answer = Client().post(path.replace("{job_id}", str(job_id)), body, content_type="application/json", headers=headers)
    assert answer.status_code in (200, 201), answer.text
    assert faults(answer_schema(path, answer.status_code), answer.json()) == []
    return answer.json()
