"""Pulls that reach a web process together: each child is answered as if it had come alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import pytest
from django.test import RequestFactory

from broker_site.foundation.access.principal import SYSTEM
from broker_site.foundation.kernel import clock
from broker_site.roof.web.pilot_verbs import PilotVerbs, Unanswered
from tests.child_broker import SLOTS, Child
from tests.ledger.test_pull_order import make_tasks, wait
from workqueues.ledger.child_brokers import drain_child, revoke_child
from workqueues.ledger.elements import pulling
from workqueues.models import ChildBroker, Element

pytestmark = pytest.mark.django_db
Answers = list[tuple[int, dict[str, Any]]]


@pytest.fixture
def elements() -> list[int]:
    """Those that wait, in their order."""
    return [row.id for row in wait(make_tasks(), [(0, 1, 1, {"SITE_ALPHA"}, "")] * 6)]


def row_of(child: Child) -> ChildBroker:
    return ChildBroker.objects.get(name=child.name)


def said(child: Child, **more: Any) -> tuple[Child, Mapping[str, Any]]:
    """A pull of one element by this child."""
    hello = {"protocol": 1, "version": "9", "instance": child.instance, "incarnation": child.incarnation}
    return child, {**hello, "now": clock.now().isoformat(), "key": str(uuid4()), "sites": child.sites, "most": 1, **more}


def answered(*pulls: tuple[Child, Mapping[str, Any]], between: Callable[[], Any] = lambda: None) -> Answers:
    """Status and body of each, as the web server answers those that wait at the same time; `between`: done when all are heard."""
    verbs, answers, begun = PilotVerbs(), dict[int, Any](), list[tuple[int, Unanswered]]()
    for place, (child, body) in enumerate(pulls):
        request = RequestFactory().post(
            "/api/v1/tree/pull/", body, content_type="application/json", headers={"authorization": f"Bearer {child.token}"}
        )
        found = verbs.begin(request.environ)
        assert found is not None
        if isinstance(found, Unanswered):
            begun.append((place, found))
        else:
            answers[place] = found
    between()
    for i, response in verbs.end([each for _, each in begun]):
        answers[begun[i][0]] = response
    return [(answers[place].status_code, json.loads(answers[place].content)) for place in range(len(pulls))]


def ids(answers: Answers) -> list[Any]:
    """The elements of each answer, or its status where it is a fault."""
    return [[one["id"] for one in body["elements"]] if status == 200 else status for status, body in answers]


def test_a_bad_one_among_good_ones_is_answered_by_itself(elements: list[int]) -> None:
    good, revoked, strange, unknown, circle, drained, last = (Child(name) for name in "abcdefg")
    drain_child(row_of(drained), 60.0, SYSTEM)
    ((_, first),) = answered(said(good))
    answers = answered(
        said(revoked), said(strange, protocol=7), said(unknown, sites={"NOWHERE": SLOTS}), said(strange, most="many"),
        said(circle, instance=first["instance"]), said(drained), said(last, most=2), said(good),
        between=lambda: revoke_child(row_of(revoked), SYSTEM),
    )  # fmt: skip
    assert ids(answers) == [401, 422, 422, 422, 409, [], [elements[1], elements[2]], []]
    assert [answers[i][1]["why"] for i in (5, 6, 7)] == [{"draining": 1}, {}, {"negotiating": 1}]
    assert answers[0][1]["detail"] == "The token of this child broker was revoked."
    assert (answers[4][1]["title"], answers[4][1]["errors"][0]["field"]) == ("A circle of brokers", "instance")
    assert len({body["trace_id"] for status, body in answers if status != 200}) == 5
    errors = {child.name: row_of(child).last_error for child in (revoked, strange, unknown, circle, last)}
    assert [name for name, error in errors.items() if error] == ["c", "d", "e"]


def test_two_brokers_with_one_token_spoil_nothing_for_a_third(elements: list[int]) -> None:
    west, east = Child("west"), Child("east")
    assert ids(answered(said(west))) == [[elements[0]]]
    Element.objects.filter(id=elements[0]).update(status="Acquired")
    assert ids(answered(said(west, instance=str(uuid4())), said(east))) == [[elements[2]], [elements[1]]]
    assert Element.objects.get(id=elements[0]).status == "Failed", "taken back; it has no files"
    assert row_of(west).last_error == "another broker speaks with the token of its child"
    assert ids(answered(said(west), said(east))) == [409, []]


def test_a_child_that_asks_twice_gets_once_what_it_may(elements: list[int]) -> None:
    west, east = Child("west"), Child("east")
    first = said(west, most=2)
    answers = answered(first, said(east), first, said(west))
    assert ids(answers) == [elements[:2], [elements[2]], elements[:2], []]
    assert answers[3][1]["why"] == {"negotiating": 2}
    assert ids(answered(first)) == [[]], "its answer went with the next key"
    assert Element.objects.filter(child=row_of(west)).count() == 2


def test_a_fault_that_is_not_known_is_told_to_the_one_whose_it_is(elements: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    west, east = Child("west"), Child("east")
    real = pulling.wish_of

    def wish_of(child: Any, ask: Any, most_held: int) -> Any:
        return 1 // 0 if child.speaker.name == "west" else real(child, ask, most_held)

    monkeypatch.setattr(pulling, "wish_of", wish_of)
    assert ids(answered(said(west), said(east))) == [500, [elements[0]]]


def test_more_than_go_into_one_transaction_are_all_answered_in_their_order(elements: list[int]) -> None:
    children = [Child(f"c{number}") for number in range(5)]
    assert ids(answered(*(said(child, most=20) for child in children))) == [elements, [], [], [], []]
