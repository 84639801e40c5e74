"""A draft that somebody uploads or pastes on the page: what it would lead to, applied from there; its faults by line."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from broker_site.foundation.gdpconfig.changesets import Draft, named_line
from broker_site.foundation.gdpconfig.models import ChangeSet, Override
from broker_site.foundation.gdpconfig.store import apply
from tests.monitoring.answers import text
from tests.monitoring.test_configuration import APPLY, client, root, words  # noqa: F401 - root is a fixture

IMPORT = "/config/draft/import/"
WRITTEN = """\
overrides:
- key: jobbroker.NQUEUED_SAT_CAP
  value: 150   # until the link is repaired
shares:
- name: Top
  vo: demo
  value: 60
"""

pytestmark = pytest.mark.django_db


def hidden(answer: Any) -> dict[str, list[str]]:
    """What the form that applies would send."""
    page, found = text(answer), dict[str, list[str]]()
    for name, value in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page[page.index('id="apply"') :]):
        found.setdefault(name, []).append(unescape(value))
    return {name: values for name, values in found.items() if name != "csrfmiddlewaretoken"}


def test_a_text_that_is_pasted_becomes_a_draft_and_is_applied_from_there(root: Client) -> None:  # noqa: F811
    apply(Draft([named_line("share", "Top", "demo", {"value": 60})], "ann", "x", "rest"))
    seen = root.post(IMPORT, {"text": WRITTEN})
    assert seen.status_code == 200
    assert "jobbroker.NQUEUED_SAT_CAP" in words(seen)
    assert "Apply 1 line" in words(seen)  # the share holds already
    assert not Override.objects.exists()
    root.post(APPLY, {**hidden(seen), "why": "as agreed"})
    assert [(row.name, row.value) for row in Override.objects.all()] == [("NQUEUED_SAT_CAP", "150")]
    assert "All of it holds already" in words(root.post(IMPORT, {"text": WRITTEN}))


def test_a_file_is_read_as_well_and_what_it_does_not_name_is_removed_where_that_is_asked(root: Client) -> None:  # noqa: F811
    apply(Draft([named_line("config", "agents.PERIOD_reap", "", "20s")], "ann", "x", "rest"))
    sent = {"file": SimpleUploadedFile("draft.yaml", WRITTEN.encode()), "only": "yes"}
    seen = root.post(IMPORT, sent)
    assert "Apply 3 lines" in words(seen)
    root.post(APPLY, {**hidden(seen), "why": "as agreed"})
    assert [row.name for row in Override.objects.all()] == ["NQUEUED_SAT_CAP"]


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"text": "overrides:\n- key: jobbroker.NQUEUED_SAT_CAP\n  value: on\n"}, "line 3: NQUEUED_SAT_CAP: 'on' is not a whole"),
        ({"text": "shares:\n- name: *all\n"}, "line 2: aliases"),
        ({"text": ""}, "no JSON that can be read"),
        ({"file": SimpleUploadedFile("draft.yaml", b"a: \xff")}, "the file is not UTF-8"),
    ],
)
def test_faults_are_told_by_line_and_the_text_stays(root: Client, sent: dict[str, Any], told: str) -> None:  # noqa: F811
    answer = root.post(IMPORT, sent)
    assert answer.status_code == 400
    assert told in words(answer)
    if isinstance(sent.get("text"), str) and sent["text"]:
        assert sent["text"].split("\n")[1] in unescape(text(answer))
    assert not ChangeSet.objects.exists()


def test_a_fault_is_told_at_its_line_also_where_what_is_not_named_is_removed(root: Client) -> None:  # noqa: F811
    apply(Draft([named_line("config", "agents.PERIOD_reap", "", "20s")], "ann", "x", "rest"))
    seen = root.post(IMPORT, {"text": WRITTEN.replace("value: 60", "value: -60"), "only": "yes"})
    assert seen.status_code == 400
    assert "line 7: Top: a share of -60 is negative" in words(seen)


def test_whoever_may_read_may_try_but_not_apply(db: None) -> None:
    seen = client().post(IMPORT, {"text": WRITTEN})
    assert (seen.status_code, 'id="apply"' in text(seen)) == (200, False)
    assert client("root2", superuser=True).put(IMPORT).status_code == 405


def test_whoever_opens_the_address_of_the_import_gets_its_form(root: Client) -> None:  # noqa: F811
    answer = root.get(IMPORT, follow=True)
    assert (answer.status_code, answer.redirect_chain) == (200, [("/config/draft/", 302)])
    assert f'action="{IMPORT}"' in text(answer)


@pytest.mark.parametrize("end", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+14:00"])
def test_an_end_outside_of_the_years_that_there_are_is_refused_by_its_line(root: Client, end: str) -> None:  # noqa: F811
    seen = root.post(IMPORT, {"text": f"overrides:\n- key: jobbroker.NQUEUED_SAT_CAP\n  value: 150\n  until: {end}\n"})
    assert seen.status_code == 400
    assert "line 4: overrides[0]: until is to be a time" in words(seen)
    typed = root.get("/config/draft/", {"key": "jobbroker.NQUEUED_SAT_CAP", "value": "150", "until": end})
    assert typed.status_code == 400
    assert "a time as 2026-12-24 18:00, in UTC" in words(typed)
