"""Children that pull together get what they would get one after the other, in the order of their asks, whatever goes wrong."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Event
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker_site.foundation.access.principal import SYSTEM
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.agency import batches
from broker_site.foundation.kernel import clock
from broker_site.foundation.sql.prepared import Prepared
from tests.ledger.test_pull_order import JOBS, LOOKS, PARTS, SLOTS, asking, make_tasks, wait
from workqueues.ledger.child_brokers import add_child, revoke_child
from workqueues.ledger.elements import acquiring, next_waiting, pulling
from workqueues.ledger.elements.contacts import Circle, TooSoon
from workqueues.ledger.elements.pulling import ChildPull, Pulled, PullTerms, pull_each
from workqueues.ledger.installation import identity
from workqueues.models import ChildBroker, Element, ElementChange, Installation, Task
from workqueues.rules.elements.acquisition import Element as Waiting
from workqueues.rules.elements.acquisition import Puller, acquire
from workqueues.rules.elements.element_sites import SiteWishes
from workqueues.rules.elements.messages import Pull

TERMS = PullTerms(900.0, pause_s=60.0)


class InOrder(Random):
    """Dice that leave all as it is: of an element's sites the first with a slot is chosen."""

    def shuffle(self, x: Any) -> None:
        pass


class Asker(NamedTuple):
    """A child, and what it says."""

    team: str
    vo: str
    slots: dict[str, int]
    jobs: dict[str, dict[int, int]]
    most: int
    is_draining: bool
    free_jobs: int | None


ASKERS = st.builds(
    Asker,
    team=st.sampled_from(("", "red", "blue")),
    vo=st.sampled_from(("", "demo", "other")),
    slots=SLOTS,
    jobs=JOBS,
    most=st.integers(0, 8),
    is_draining=st.sampled_from((False, False, False, True)),
    free_jobs=st.sampled_from((None, None, 0, 3)),
)


def child_of(team: str = "", vo: str = "") -> ChildBroker:
    return add_child(f"c{uuid4().hex[:8]}", team, vo, SYSTEM).child


def pull_of(child: ChildBroker, said: Pull) -> ChildPull:
    return ChildPull(child.credential_id, said)


def told(results: Sequence[Pulled | Exception]) -> list[Any]:
    """The elements of each with their sites, or the kind of its fault."""
    return [[one["id"] for one in r.answer["elements"]] if isinstance(r, Pulled) else type(r) for r in results]


def expected(rows: Sequence[Element], askers: Sequence[Asker]) -> list[tuple[list[tuple[int, str]], dict[str, int]]]:
    """What the rule gives each after those before it, and why it gets nothing."""
    left = {row.id: row for row in rows}
    all_told: list[tuple[list[tuple[int, str]], dict[str, int]]] = []
    for asker in askers:
        waiting = [
            Waiting(str(row.id), row.priority, row.task_id, row.jobs, SiteWishes(row.group.sites), row.group.team)
            for row in left.values()
            if row.group is not None and (not asker.vo or asker.vo == row.group.vo)
        ]
        puller = Puller(asker.team, free_jobs=asker.free_jobs, is_draining=asker.is_draining)
        got = acquire(waiting, asker.slots, InOrder(), counts=asker.jobs, puller=puller, most=asker.most)  # type: ignore[arg-type]
        given = [(int(element.id), site) for element, site in got.elements]
        why = {"draining": 1} if asker.is_draining else {}
        why |= {"no_free_job": 1} if asker.free_jobs == 0 else {}
        all_told.append((given, why or ({} if given else {"nothing_waits": 1})))
        for id_, _ in given:
            del left[id_]
    return all_told


@pytest.fixture
def batch_tasks(db: None) -> list[Task]:
    """Of two VOs."""
    tasks = make_tasks()
    tasks[2].vo = "other"
    tasks[2].save(update_fields=["vo"])
    return tasks


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(PARTS, max_size=25),
    askers=st.lists(ASKERS, min_size=1, max_size=5),
    look=st.sampled_from(LOOKS),
    many=st.sampled_from((0, 10, 1000)),
)
def test_a_batch_gives_what_the_rule_gives_one_after_the_other(
    batch_tasks: list[Task], parts: list[Any], askers: list[Asker], look: tuple[Prepared, Prepared], many: int
) -> None:
    with transaction.atomic(), pytest.MonkeyPatch.context() as patched:
        patched.setattr(next_waiting, "NEXT", look[0])
        patched.setattr(next_waiting, "BEYOND_FRONT", look[1])
        patched.setattr(next_waiting, "MANY", many)
        patched.setattr(acquiring, "dice", lambda *names: InOrder())
        wait(batch_tasks, parts)
        rows = list(Element.objects.select_related("group").order_by("id"))
        pulls = [
            pull_of(
                child_of(asker.team, asker.vo),
                asking(asker.slots, asker.jobs, asker.most, draining=asker.is_draining, free_jobs=asker.free_jobs),
            )
            for asker in askers
        ]
        results = pull_each(pulls, TERMS, clock.now())
        answers = [one.answer for one in results if isinstance(one, Pulled)]
        found = [([(e["id"], e["site"]) for e in answer["elements"]], answer["why"]) for answer in answers]
        assert found == expected(rows, askers)
        holders = dict(Element.objects.filter(status="Negotiating").values_list("id", "child__credential"))
        assert holders == {id_: one.credential for one, (given, _) in zip(pulls, found, strict=True) for id_, _ in given}
        assert ElementChange.objects.filter(new="Negotiating").count() == len(holders)
        again = [one.answer for one in pull_each(pulls, TERMS, clock.now()) if isinstance(one, Pulled)]
        assert again == answers, "the same keys get the same"
        transaction.set_rollback(True)


def plain(most: int = 1, **more: Any) -> Pull:
    return asking({"A": 100}, {}, most, **more)


@pytest.mark.django_db
def test_who_may_not_pull_spoils_nothing_for_those_beside_it() -> None:
    """One is revoked, one is this broker, one comes with another's token, and again; the elements go on to the next that may."""
    rows = wait(make_tasks(), [(0, 1, 1, {"A"}, "")] * 5)
    good, revoked, circle, other, last = (child_of() for _ in range(5))
    revoke_child(revoked, SYSTEM)
    assert told(pull_each([pull_of(other, plain())], TERMS, clock.now())) == [[rows[0].id]]
    Element.objects.filter(id=rows[0].id).update(status="Acquired")
    another: dict[str, Any] = {"instance": str(uuid4())}
    pulls = [
        pull_of(revoked, plain()), pull_of(good, plain(2)), pull_of(circle, plain(instance=str(identity().instance))),
        pull_of(other, plain(**another)), pull_of(last, plain()),
    ]  # fmt: skip
    results = pull_each(pulls, TERMS, clock.now())
    assert told(results) == [Refused, [rows[1].id, rows[2].id], Circle, [rows[4].id], [rows[3].id]]
    assert isinstance(results[0], Refused) and results[0].status == 401
    assert Element.objects.get(id=rows[0].id).status == "Failed", "taken back of the one that it was before; it had no files"
    assert "its own child" in ChildBroker.objects.get(id=circle.id).last_error
    assert told(pull_each([pull_of(other, plain()), pull_of(last, plain())], TERMS, clock.now())) == [TooSoon, []]


@pytest.mark.django_db
def test_the_first_messages_ever_go_together_too() -> None:
    rows = wait(make_tasks(), [(0, 1, 1, {"A"}, "")] * 2)
    Installation.objects.all().delete()
    results = pull_each([pull_of(child_of(), plain()) for _ in rows], TERMS, clock.now())
    assert told(results) == [[row.id] for row in rows]
    assert {one.me for one in results if isinstance(one, Pulled)} == {identity()}
    assert set(Element.objects.values_list("incarnation", flat=True)) == {identity().incarnation}


@pytest.mark.django_db
def test_no_child_has_more_than_it_may_and_one_that_has_not_confirmed_gets_nothing() -> None:
    rows = wait(make_tasks(), [(0, 1, 1, {"A"}, "")] * 6)
    first, second, third = (child_of() for _ in range(3))
    terms = PullTerms(900.0, most_held=2)
    pull_each([pull_of(first, plain(1)), pull_of(second, plain(1))], terms, clock.now())
    Element.objects.filter(child=first).update(status="Acquired")
    results = pull_each([pull_of(first, plain(5)), pull_of(second, plain(5)), pull_of(third, plain(5))], terms, clock.now())
    assert told(results) == [[rows[2].id], [], [rows[3].id, rows[4].id]]
    assert [one.answer["why"] for one in results if isinstance(one, Pulled)] == [{}, {"negotiating": 1}, {}]
    Element.objects.filter(child=third).update(status="Acquired")
    (full,) = pull_each([pull_of(third, plain())], terms, clock.now())
    assert isinstance(full, Pulled) and full.answer["why"] == {"holds_most": 2}


@pytest.mark.django_db
def test_a_fault_of_one_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = wait(make_tasks(), [(0, 1, 1, {"A"}, "")] * 3)
    first, bad, last = (child_of() for _ in range(3))
    real = pulling.wish_of

    def wish_of(child: Any, said: Pull, most_held: int) -> Any:
        if child.speaker.id == bad.id:
            Element.objects.raw("SELECT 1/0 AS id")[0]
        return real(child, said, most_held)

    monkeypatch.setattr(pulling, "wish_of", wish_of)
    results = pull_each([pull_of(child, plain()) for child in (first, bad, last)], TERMS, clock.now())
    assert [r if isinstance(r, list) else r.__name__ for r in told(results)] == [[rows[0].id], "DataError", [rows[1].id]]
    assert ChildBroker.objects.get(id=bad.id).last_pull_key is None


@pytest.mark.django_db
def test_the_log_says_why_pulls_are_answered_one_by_one_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where each then goes well."""
    wait(make_tasks(), [(0, 1, 1, {"A"}, "")] * 6)
    children = [child_of() for _ in range(3)]
    real = pulling._consignments

    def only_alone(wishes: Any, terms: Any) -> Any:
        if len(wishes) > 1:
            Element.objects.raw("SELECT 1/0 AS id")[0]
        return real(wishes, terms)

    monkeypatch.setattr(pulling, "_consignments", only_alone)
    monkeypatch.setattr(batches, "_said_until", {})
    results = pull_each([pull_of(child, plain()) for child in children], TERMS, clock.now())
    assert [len(one) for one in told(results)] == [1, 1, 1]
    pull_each([pull_of(child, plain()) for child in children], TERMS, clock.now())
    (line,) = [record for record in caplog.records if record.name == batches.__name__]
    assert line.getMessage() == "pulls that came together failed, and each is done by itself: DataError"
    assert line.exc_info
    monkeypatch.setattr(batches, "SAID_EVERY_S", 0.0)
    batches._said_until.clear()
    pull_each([pull_of(child, plain()) for child in children], TERMS, clock.now())
    assert len([record for record in caplog.records if record.name == batches.__name__]) == 2


@pytest.mark.django_db(transaction=True)
def test_a_child_that_somebody_holds_keeps_no_others_from_what_they_get() -> None:
    """As one that has asked another process again, which has not yet answered."""
    rows = wait(make_tasks(), [(0, 1, 1, {"A"}, "")] * 3)
    held, *others = (child_of() for _ in range(3))
    identity()

    def pull_meanwhile() -> list[Any]:
        try:
            return told(pull_each([pull_of(child, plain()) for child in (held, *others)], TERMS, clock.now()))
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            ChildBroker.objects.select_for_update(no_key=True).get(id=held.id)
            pulling_now = pool.submit(pull_meanwhile)
            end = time.monotonic() + 10
            while Element.objects.filter(status="Negotiating").count() < 2 and time.monotonic() < end:
                time.sleep(0.02)
            given = dict(Element.objects.filter(status="Negotiating").values_list("child_id", "id"))
            assert given == {child.id: row.id for child, row in zip(others, rows, strict=False)}
        assert pulling_now.result(30) == [[rows[2].id], [rows[0].id], [rows[1].id]]


@pytest.mark.django_db(transaction=True)
def test_what_another_holds_hides_nothing_that_waits_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where those at the front are for others, and all that suit are in one group."""
    look = LOOKS[2]
    monkeypatch.setattr(next_waiting, "NEXT", look[0])
    monkeypatch.setattr(next_waiting, "BEYOND_FRONT", look[1])
    rows = wait(make_tasks(), [(0, 1, 1, {"A"}, "")] * 600)
    child = child_of()
    identity()

    def pull_meanwhile() -> list[Any]:
        try:
            return told(pull_each([pull_of(child, asking({"A": 1000}, {}, 100))], TERMS, clock.now()))
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        held = list(Element.objects.filter(id__in=[row.id for row in rows[:400]]).select_for_update(no_key=True))
        (given,) = pool.submit(pull_meanwhile).result(30)
        assert len(held) == 400
    assert given == [row.id for row in rows[400:500]]


@pytest.mark.django_db
def test_who_found_others_at_the_last_elements_looks_no_more_when_these_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many sites it has."""
    wait(make_tasks(), [(0, 1, 1, {"A"}, "")])
    looks: list[int] = []

    def taken_meanwhile(*_: Any) -> next_waiting.Page:
        looks.append(1)
        return next_waiting.Page([], others_hold=len(looks) == 1)

    monkeypatch.setattr(acquiring, "next_waiting", taken_meanwhile)
    (pulled,) = pull_each([pull_of(child_of(), asking({f"S{n}": 5 for n in range(100)}, {}, 1))], TERMS, clock.now())
    assert isinstance(pulled, Pulled) and pulled.answer["why"] == {"in_other_hands": 1}
    assert len(looks) == 2


@pytest.mark.django_db(transaction=True)
def test_batches_at_once_give_no_element_twice_and_leave_none() -> None:
    """The same children come to several processes at the same time, in another order each time."""
    rows = wait(make_tasks(), [(i % 3, i % 4 + 1, 1, {"A"}, "") for i in range(200)])
    children = [child_of() for _ in range(8)]
    got: dict[UUID, list[int]] = {}

    def pulls(number: int) -> None:
        dice = Random(number)
        try:
            for _ in range(80):
                asked = dice.sample(children, 5)
                batch = [pull_of(child, plain(dice.randint(0, 4))) for child in asked]
                results = pull_each(batch, TERMS, clock.now())
                assert all(isinstance(one, Pulled) for one in results), results
                for (_, said), child, ids in zip(batch, asked, told(results), strict=True):
                    got[said.key] = ids
                    Element.objects.filter(id__in=ids, child=child).update(status="Acquired")
                if Element.objects.filter(status="Available").count() == 0:
                    break
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(pulls, range(4)))
    given = [id_ for ids in got.values() for id_ in ids]
    assert sorted(given) == sorted(row.id for row in rows)
    assert not Element.objects.exclude(status="Acquired").exists()


@pytest.mark.django_db(transaction=True)
def test_the_same_pulls_at_once_in_another_order_get_the_same() -> None:
    """An answer that was lost on its way: the children ask another process again, which waits for the first one."""
    wait(make_tasks(), [(0, 1, 1, {"A"}, "")] * 12)
    children = [child_of() for _ in range(4)]
    identity()
    pulls = [pull_of(child, plain(2)) for child in children]

    def pull_in(order: Sequence[int]) -> dict[int, Any]:
        try:
            batch = [pulls[i] for i in order]
            return dict(zip(order, told(pull_each(batch, TERMS, clock.now())), strict=True))
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(pull_in, ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3], [2, 0, 3])))
    for number in range(4):
        assert len({str(answer[number]) for answer in answers if number in answer}) == 1
    assert Element.objects.filter(status="Negotiating").count() == 8


@pytest.mark.django_db(transaction=True)
def test_those_that_pull_together_hold_no_more_than_they_may_get() -> None:
    """A child that pulls from another process meanwhile gets of the few that are left."""
    rows = wait(make_tasks(), [(0, 1, 1, {"A"}, "")] * 4)
    *together, other = (child_of() for _ in range(3))
    identity()
    has_chosen, goes_on = Event(), Event()
    real = pulling.hand_over

    def hand_over(*told: Any) -> dict[int, int]:
        has_chosen.set()
        assert goes_on.wait(30)
        return real(*told)

    def pull_together() -> list[Any]:
        try:
            return told(pull_each([pull_of(child, plain()) for child in together], TERMS, clock.now()))
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool, pytest.MonkeyPatch.context() as patched:
        patched.setattr(pulling, "hand_over", hand_over)
        first = pool.submit(pull_together)
        assert has_chosen.wait(30)
        patched.undo()
        try:
            (meanwhile,) = pull_each([pull_of(other, plain(2))], TERMS, clock.now())
        finally:
            goes_on.set()
        assert first.result(30) == [[rows[0].id], [rows[1].id]]
    assert told([meanwhile]) == [[rows[2].id, rows[3].id]]
