"""The configuration over REST: read, tried, changed together, told apart from what others did, taken back."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

import pytest
from django.test import Client

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.credentials import ensure_user
from broker_site.foundation.access.models import Audit
from broker_site.foundation.gdpconfig.models import ChangeSet, Override
from tests.api.people import Person, faults, person

CAP = "jobbroker.NQUEUED_SAT_CAP"
CHANGES = "config/changes/"

pytestmark = pytest.mark.django_db


@pytest.fixture
def root(db: None) -> Person:
    return person("root", superuser=True)


def line(key: str = CAP, value: Any = 150, **more: Any) -> dict[str, Any]:
    return {"key": key, "value": value, **more}


def change(who: Person, *lines: Any, **more: Any) -> Any:
    return who.post(CHANGES, {"lines": list(lines), "reason": "ticket 7", **more})


def test_keys_are_listed_with_default_override_and_who_set_it(root: Person, ada: Person) -> None:
    assert change(root, line(), line(value="200", vo="atlas")).status_code == 201
    answer = ada.get("config/", component="jobbroker", overridden="true").json()
    assert answer["revision"] == 1
    (row,) = answer["results"]
    assert (row["key"], row["type"], row["default_value"], row["effective"]) == (CAP, "int", "300", "150")
    assert [(o["vo"], o["value"], o["who"], o["why"], o["revision"]) for o in row["overrides"]] == [
        ("", "150", "root", "ticket 7", 1),
        ("atlas", "200", "root", "ticket 7", 1),
    ]
    found = ada.get("config/", q="link nucleus").json()["results"]
    assert CAP in {row["key"] for row in found}
    assert len(found) < len(ada.get("config/").json()["results"])


def test_a_filter_that_there_is_not_is_refused(ada: Person) -> None:
    assert faults(ada.get("config/", componet="x", overridden="maybe"), 400) == {
        ("componet", "unknown"),
        ("overridden", "choice"),
    }


def test_a_set_holds_at_once_and_is_audited(root: Person) -> None:
    answer = change(root, line(), line("agents.PERIOD_reap", "20s"), ticket="GGUS-1")
    assert answer.status_code == 201
    made = answer.json()
    assert (made["revision"], made["who"], made["source"], made["ticket"], made["reverts"]) == (1, "root", "rest", "GGUS-1", None)
    assert [(each["key"], each["before"], each["after"]) for each in made["lines"]] == [
        (CAP, None, "150"),
        ("agents.PERIOD_reap", None, "20s"),
    ]
    assert gdpconfig.value("jobbroker", "NQUEUED_SAT_CAP") == 150
    row = Audit.objects.get(act="config.change")
    assert (row.who, row.reason, row.after) == ("root", "ticket 7", {"revision": 1, "lines": 2, "reverts": None})


def test_nothing_is_written_where_nothing_differs(root: Person) -> None:
    change(root, line())
    answer = change(root, line(value="150"))
    assert (answer.status_code, answer.json()) == (200, {"revision": None, "lines": []})
    assert ChangeSet.objects.count() == 1


def test_a_dry_run_says_what_would_hold_and_writes_nothing(root: Person) -> None:
    change(root, line())
    answer = change(root, line(value=None), line(value=99, vo="atlas"), dry_run=True)
    assert answer.status_code == 200
    body = answer.json()
    assert body["revision"] == 1
    told = [
        (each["vo"], each["before"], each["after"], each["effective_before"], each["effective_after"]) for each in body["lines"]
    ]
    assert told == [("", "150", None, "150", "300"), ("atlas", None, "99", "150", "99")]
    assert body["decisions"]["decisions"] == 0
    assert body["decisions"]["sentence"].startswith("No kept decision")
    assert Override.objects.get().value == "150"
    assert ChangeSet.objects.count() == 1


def test_every_bad_line_is_named_with_its_rule_and_nothing_is_changed(root: Person) -> None:
    answer = change(
        root,
        line(),
        line("jobbroker.NQUEUED_SAT_CPA"),
        line(value="many", vo="atlas"),
        line(value=-1, vo="cms"),
        line(value=5, vo="no vo"),
        line("NQUEUED_SAT_CAP"),
        line(value=7, vo="lhcb", until="2001-01-01T00:00:00Z"),
    )
    assert faults(answer) == {
        ("lines[1].key", "unknown_key"),
        ("lines[2].value", "type"),
        ("lines[3].value", "range"),
        ("lines[4].vo", "vo"),
        ("lines[5].key", "unknown_key"),
        ("lines[6].until", "range"),
    }
    told = {each["field"]: each["message"] for each in answer.json()["errors"]}
    assert "did you mean NQUEUED_SAT_CAP" in told["lines[1].key"]
    assert "it is a key of jobbroker.NQUEUED_SAT_CAP" in told["lines[5].key"]
    assert not Override.objects.exists()


@pytest.mark.parametrize(
    ("body", "field", "rule"),
    [
        ({"lines": [line()]}, "reason", "required"),
        ({"lines": [line()], "reason": "  "}, "reason", "blank"),
        ({"lines": [], "reason": "x"}, "lines", "min_length"),
        ({"lines": "all", "reason": "x"}, "lines", "not_a_list"),
        ({"lines": [7], "reason": "x"}, "lines.0", "not_a_dict"),
        ({"lines": [{"key": CAP}], "reason": "x"}, "lines[0].value", "required"),
        ({"lines": [line(valeu=1)], "reason": "x"}, "lines[0].valeu", "unknown"),
        ({"lines": [line(until="soon")], "reason": "x"}, "lines[0].until", "invalid"),
        ({"lines": [line()], "reason": "x", "dryrun": True}, "dryrun", "unknown"),
        ({"lines": [line()], "reason": "x", "base": -1}, "base", "min_value"),
        ({"lines": [line()], "reason": "x", "base": 7}, "base", "range"),
        ({"lines": [line()] * 10_000, "reason": "x"}, "lines", "range"),
        ({"lines": [line(), line()], "reason": "x"}, "lines[0]", "twice"),
        ({"lines": [line("\u202e" * 200)], "reason": "x"}, "lines[0].key", "unknown_key"),
        ({"lines": [line("jobbroker.\u202eX")], "reason": "x"}, "lines[0].key", "name"),
        ({"lines": [line("core.POLICY_analysis", "<script>alert(1)</script>")], "reason": "x"}, "lines[0].value", "known"),
        ({"lines": [line(value={"a": [1, 2]})], "reason": "x"}, "lines[0].value", "type"),
        ({"lines": [line()], "reason": "x", "ticket": "a\nb"}, "ticket", "format"),
    ],
)
def test_what_is_malformed_is_refused(root: Person, body: Any, field: str, rule: str) -> None:
    answer = root.post(CHANGES, body)
    assert (field, rule) in faults(answer)
    assert not ChangeSet.objects.exists()


def test_who_looked_at_an_older_revision_is_told_who_was_faster(root: Person) -> None:
    other = person("bob", superuser=True)
    change(root, line())
    change(other, line(value=200))
    answer = change(root, line(value=250), base=1)
    assert faults(answer, 409) == {("lines[0]", "stale")}
    assert "bob has set it to '200'" in answer.json()["errors"][0]["message"]
    assert faults(change(root, line(value=250, before="150")), 409) == {("lines[0]", "stale")}
    assert faults(change(root, line(value=250, before="150"), dry_run=True), 409) == {("lines[0]", "stale")}
    assert change(root, line(value=250, before="200"), base=2).status_code == 201


def test_a_set_is_taken_back_by_another_that_names_it(root: Person) -> None:
    change(root, line(), line("agents.PERIOD_reap", "20s"))
    tried = root.post(f"{CHANGES}1/revert/", {"reason": "wrong", "dry_run": True})
    assert [(each["before"], each["after"]) for each in tried.json()["lines"]] == [("150", None), ("20s", None)]
    answer = root.post(f"{CHANGES}1/revert/", {"reason": "wrong"})
    assert (answer.status_code, answer.json()["revision"], answer.json()["reverts"]) == (201, 2, 1)
    assert not Override.objects.exists()
    change(root, line(value=400))
    assert faults(root.post(f"{CHANGES}2/revert/", {"reason": "again"}), 409) == {("lines[0]", "stale")}
    assert root.post(f"{CHANGES}77/revert/", {"reason": "x"}).status_code == 404
    assert faults(root.post(f"{CHANGES}3/revert/", {})) == {("reason", "required")}


def test_sets_are_listed_newest_first_and_page_by_page(root: Person, ada: Person) -> None:
    for value in range(5):
        change(root, line(value=value + 1))
    change(root, *(line(f"prod_job_throttler.NQUEUELIMIT_Q{i}", 5) for i in range(30)))
    page = ada.get(CHANGES, page_size=2).json()
    assert [(each["revision"], each["n_lines"], len(each["lines"])) for each in page["results"]] == [(6, 30, 20), (5, 1, 1)]
    query = dict(parse_qsl(page["next"].partition("?")[2]))
    assert [each["revision"] for each in ada.get(CHANGES, **query).json()["results"]] == [4, 3]
    assert [each["revision"] for each in ada.get(CHANGES, component="prod_job_throttler").json()["results"]] == [6]
    assert len(ada.get(f"{CHANGES}6/").json()["lines"]) == 30
    assert ada.get(f"{CHANGES}{1 << 70}/").status_code == 404


def test_only_a_superuser_changes_the_configuration_and_whoever_has_a_role_reads_it(olga: Person, ada: Person) -> None:
    assert change(olga, line()).status_code == 403
    assert change(olga, line(vo="demo")).status_code == 403
    assert olga.post(f"{CHANGES}1/revert/", {"reason": "x"}).status_code == 403
    assert person("nobody").get("config/").status_code == 403
    assert ada.get("config/").status_code == 200
    assert not ChangeSet.objects.exists()


def test_a_session_whose_password_is_long_ago_changes_nothing(root: Person) -> None:
    browser = Client()
    browser.force_login(ensure_user("root", superuser=True))
    session = browser.session
    session["password"] = 0
    session.save()
    body = json.dumps({"lines": [line()], "reason": "x"})
    answer = browser.post(f"/api/v1/{CHANGES}", body, content_type="application/json")
    assert (answer.status_code, answer.json()["title"]) == (403, "Password needed")
    assert not ChangeSet.objects.exists()
