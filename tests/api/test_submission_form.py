"""The page on which a task is submitted: an example is taken as it is, once, and what is wrong is told with its line."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from broker_site.foundation.access.credentials import ensure_user
from tests.builders import catalogue_dataset
from workqueues.models import Task
from workqueues.rules.submission_examples import EXAMPLES

pytestmark = pytest.mark.django_db

PAGE = "/tasks/submit/"


def signed_in(name: str, *roles: tuple[str, str]) -> Client:
    client = Client()
    client.force_login(ensure_user(name, roles=list(roles)))
    return client


@pytest.fixture
def ada() -> Client:
    return signed_in("ada", ("demo", "submitter"))


def shown(answer: Any) -> str:
    """The document in the form."""
    found = re.search(r"<textarea[^>]*>(.*?)</textarea>", answer.content.decode(), re.DOTALL)
    assert found is not None
    return unescape(found[1])


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_is_taken_as_it_is(ada: Client, name: str) -> None:
    if name == "files":
        catalogue_dataset("my.events.EVNT", 2)
    answer = ada.post(PAGE, {"document": shown(ada.get(PAGE, {"example": name})), "key": str(uuid4())})
    task = Task.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/tasks/{task.id}/")
    assert (task.user_name, task.vo, task.task_name) == ("ada", "demo", f"my.{name}")


def test_a_form_that_is_sent_twice_is_one_task(ada: Client) -> None:
    sent = {"document": shown(ada.get(PAGE)), "key": str(uuid4())}
    assert ada.post(PAGE, sent)["Location"] == ada.post(PAGE, sent)["Location"]
    assert Task.objects.count() == 1


def test_what_is_wrong_is_told_with_field_and_line_and_the_text_stays(ada: Client) -> None:
    document = {**json.loads(shown(ada.get(PAGE))), "nEvents": "<many>", "taskPriority": -3.5}
    text = json.dumps(document, indent=1)
    answer = ada.post(PAGE, {"document": text, "key": str(uuid4())})
    page = answer.content.decode()
    assert answer.status_code == 422
    line = next(n for n, each in enumerate(text.splitlines(), 1) if '"nEvents"' in each)
    assert f'Line {line}, <strong class="mono">nEvents</strong>' in page
    assert '<strong class="mono">taskPriority</strong>' in page
    assert "<many>" not in page
    assert json.loads(shown(answer)) == document
    assert not Task.objects.exists()


def test_a_text_that_is_no_json_says_where(ada: Client) -> None:
    answer = ada.post(PAGE, {"document": '{"taskName": "t",\n "vo" "demo"}', "key": ""})
    assert answer.status_code == 400
    assert "line 2 column" in answer.content.decode()


def test_who_may_not_submit_gets_no_form() -> None:
    assert signed_in("eve", ("demo", "auditor")).get(PAGE).status_code == 403
    other = signed_in("bob", ("other", "submitter"))
    document = {**json.loads(shown(other.get(PAGE))), "vo": "demo"}
    assert other.post(PAGE, {"document": json.dumps(document), "key": ""}).status_code == 403
    assert not Task.objects.exists()
