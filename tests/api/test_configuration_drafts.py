"""Drafts over REST: what is steered as YAML that people read, and a draft that a person wrote as lines of a change."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from broker_site.foundation.gdpconfig.changesets import Draft, named_line
from broker_site.foundation.gdpconfig.models import ChangeSet
from broker_site.foundation.gdpconfig.store import apply
from tests.api.people import Person, faults, person

DRAFT = "config/draft/"
WRITTEN = """\
# as agreed
overrides:
- key: jobbroker.NQUEUED_SAT_CAP
  value: 1e2
shares:
- {name: Top, vo: demo, value: 60}
"""

pytestmark = pytest.mark.django_db


@pytest.fixture
def steered(db: None) -> None:
    lines = [
        named_line("config", "jobbroker.NQUEUED_SAT_CAP", "atlas", "150"),
        named_line("share", "Top", "demo", {"value": 80}),
        named_line("share", "Other", "cms", {"value": 80}),
    ]
    apply(Draft(lines, "ann", "x", "rest"))


def sent(who: Person, text: str | bytes, content_type: str = "application/yaml") -> Any:
    return Client(headers={"Authorization": f"Bearer {who.token}"}).post(f"/api/v1/{DRAFT}", text, content_type=content_type)


def test_what_is_steered_is_exported_as_people_read_it_and_only_of_ones_own_vos(steered: None, ada: Person) -> None:
    answer = ada.get(DRAFT, format="yaml")
    assert answer["Content-Type"].startswith("application/yaml")
    text = answer.content.decode()
    assert text.startswith(
        "overrides:\n- key: jobbroker.NQUEUED_SAT_CAP\n  vo: atlas\n  value: 150\nshares:\n- name: Top\n  vo: demo\n"
    )
    assert "Other" not in text
    assert ada.get(DRAFT).json()["overrides"] == [{"key": "jobbroker.NQUEUED_SAT_CAP", "vo": "atlas", "value": "150"}]
    assert ada.get(DRAFT, vo="demo").json()["overrides"] == []
    assert faults(ada.get(DRAFT, of="demo"), 400) == {("of", "unknown")}
    whole = sent(ada, text).json()["document"]
    assert whole == ada.get(DRAFT).json()


def test_a_draft_that_a_person_wrote_becomes_the_lines_of_a_change(steered: None) -> None:
    root = person("root", superuser=True)
    read = sent(root, WRITTEN).json()
    assert [(line["kind"], line["key"], line["vo"], line["value"]) for line in read["lines"]] == [
        ("config", "jobbroker.NQUEUED_SAT_CAP", "", "1e2"),
        ("share", "Top", "demo", {"value": 60}),
    ]
    assert read["at"]["overrides[0].value"] == 4
    assert ChangeSet.objects.count() == 1
    refused = root.post("config/changes/", {"lines": read["lines"], "reason": "x"})
    assert faults(refused, 422) == {("lines[0].value", "type")}  # a whole number is not written so
    made = root.post("config/changes/", {"lines": read["lines"][1:], "reason": "as agreed"})
    assert made.status_code == 201


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: &x 1\nb: *x", ("document", "yaml")),
        ("!!python/object:os.system {}", ("document", "yaml")),
        ("words", ("document", "form")),
        ("", ("document", "json")),
        ("overrides:\n- key: a.B\n", ("overrides[0].value", "required")),
        ("overrides:\n- key: a.B\n  value: 7\n  until: 2026-99-99\n", ("overrides[0].until", "format")),
    ],
)
def test_what_is_no_draft_is_refused_by_place_and_rule(ada: Person, text: str, fault: tuple[str, str]) -> None:
    assert faults(sent(ada, text), 422) == {fault}


def test_only_yaml_in_utf_8_and_of_some_length_is_read(ada: Person) -> None:
    assert sent(ada, "{}", "application/json").status_code == 415
    assert sent(ada, b"a: \xff").status_code == 400
    assert sent(ada, "x" * 5_000_001).status_code == 413
