"""Submission over REST: a share or a work queue that nobody has is refused at once; the task would be broken a moment later."""

from __future__ import annotations

import pytest

from tests.api.people import Person
from tests.builders import parameters
from workqueues.models import GlobalShare, Task, WorkQueue

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("field", "name", "message"),
    [
        ("gshare", "Expres", "the VO demo has no leaf share Expres; the nearest name is Express"),
        ("gshare", "Of others", "the VO demo has no leaf share Of others"),
        (
            "workQueueName",
            "bulk_x",
            "the VO demo has no work queue bulk_x for the prodSourceLabel user; the nearest name is bulk",
        ),
    ],
)
def test_a_share_or_work_queue_that_is_not_there_is_refused(ada: Person, field: str, name: str, message: str) -> None:
    GlobalShare.objects.create(name="Express", vo="demo", value=50, prod_source_label="none")
    GlobalShare.objects.create(name="Of others", vo="other", value=50, prod_source_label="none")
    WorkQueue.objects.create(queue_name="bulk", queue_type="user", vo="demo", status="active", queue_order=7)
    answer = ada.submit(parameters(**{field: name}))
    assert answer.json()["errors"] == [{"field": field, "rule": "exists", "message": message}]
    assert not Task.objects.exists()
    assert ada.submit(parameters(gshare="Express", workQueueName="bulk")).status_code == 201


def test_without_shares_none_can_be_named_and_a_name_of_the_wrong_type_is_told_once(ada: Person) -> None:
    assert ada.submit(parameters(gshare="Express")).json()["errors"][0]["message"] == "the VO demo has no leaf share Express"
    assert [e["rule"] for e in ada.submit(parameters(gshare=7)).json()["errors"]] == ["type"]
