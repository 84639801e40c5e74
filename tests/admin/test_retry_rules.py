"""Retry rules in the admin: edited with a history, faults beside their field, and what is wrong with others."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.test import Client

from broker_site.foundation.access.models import Audit
from brokerage.models import RetryRule
from brokerage.rules.dispatch.retry_rules import INCREASE_MEMORY
from tests.builders import grid

LIST = "/admin/brokerage/retryrule/"

pytestmark = pytest.mark.django_db


def posted(root: Client, path: str = "add/", **changes: Any) -> Any:
    """The answer to a new rule, or to a changed one."""
    form = {"name": "bad payload", "active": "on", "component": "pilot", "error_code": "PAYLOAD_EXIT", "action": "no_retry"}
    return root.post(f"{LIST}{path}", {name: value for name, value in (form | changes).items() if value is not None})


def test_every_broker_begins_with_more_memory_for_what_ran_out_of_it() -> None:
    first = import_module("brokerage.migrations.0022_first_retry_rule")
    RetryRule.objects.all().delete()
    for _ in range(2):
        first.begin(apps, None)
    rule = RetryRule.objects.get()
    assert (rule.component, rule.error_code, rule.action, rule.active) == ("pilot", "PAYLOAD_MEMORY", INCREASE_MEMORY, True)


def test_a_rule_is_added_and_changed_with_its_history(root: Client) -> None:
    assert posted(root).status_code == 302
    rule = RetryRule.objects.get(name="bad payload")
    assert posted(root, f"{rule.pk}/change/", action="limit_retry", max_attempt=2).status_code == 302
    row = Audit.objects.get(act="retryrule.change")
    assert row.before == {"action": "no_retry", "max_attempt": None}
    assert row.after == {"action": "limit_retry", "max_attempt": 2}
    assert root.get(f"{LIST}{rule.pk}/history/").status_code == 200


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"pattern": "exit (code"}, "pattern", "no regular expression: missing ), unterminated subpattern at position 5"),
        ({"pattern": "(a+)+$"}, "pattern", "what is repeated without end may not itself have"),
        ({"computing_queue": "NOWHERE"}, "computing_queue", "there is no queue NOWHERE"),
        ({"action": "limit_retry"}, "max_attempt", "limited tries need a number of tries, from 1 on"),
        ({"action": "limit_retry", "max_attempt": 0}, "max_attempt", "limited tries need a number of tries, from 1 on"),
        ({"action": "limit_retry", "max_attempt": "x"}, "max_attempt", "Enter a whole number."),
        ({"max_attempt": 3}, "max_attempt", "only limited tries have a number of tries"),
        ({"action": "explode"}, "action", "is not one of the available choices"),
        ({"component": "", "error_code": ""}, "component", "a component, a code or a pattern"),
        ({"name": "out of memory"}, "name", "already exists"),
    ],
)
def test_faults_stand_beside_their_field_and_nothing_is_stored(
    root: Client, changes: dict[str, Any], field: str, told: str
) -> None:
    RetryRule.objects.get_or_create(name="out of memory", defaults={"error_code": "X", "action": "no_retry"})
    answer = posted(root, **changes)
    assert answer.status_code == 200
    assert told in " ".join(answer.context["adminform"].form.errors[field])
    assert not RetryRule.objects.exclude(name="out of memory").exists()


def test_a_rule_for_a_queue_of_the_grid(root: Client) -> None:
    grid("ALPHA")
    assert posted(root, computing_queue="ALPHA").status_code == 302


def test_the_list_tells_of_a_pattern_that_came_another_way(root: Client) -> None:
    RetryRule.objects.create(name="broken", action="no_retry", pattern="(")
    assert "it matches nothing: no regular expression" in root.get(LIST).text
