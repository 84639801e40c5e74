"""Sets of changes: applied whole or not at all, refused where somebody was faster, taken back, ended when their time is over."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from broker_site.foundation import gdpconfig
from broker_site.foundation.gdpconfig import BadConfig, keys
from broker_site.foundation.gdpconfig.changesets import Draft, Line
from broker_site.foundation.gdpconfig.models import Change, ChangeSet, Override
from broker_site.foundation.gdpconfig.store import apply, end_expired, preview, revert, revert_draft
from broker_site.foundation.kernel import clock

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("declared")]

CAP, NOTE = ("jobbroker", "NQUEUED_SAT_CAP"), ("jobbroker", "NOTE")


def draft(*lines: Line, **more: Any) -> Draft:
    return Draft(lines, **{"who": "ann", "why": "ticket 7", "source": "rest", **more})


def faults(wanted: Draft) -> list[tuple[str, str]]:
    """Field and rule of each problem, after which nothing is changed."""
    before = (ChangeSet.objects.count(), list(Override.objects.values_list("name", "vo", "value")))
    with pytest.raises(BadConfig) as refused:
        apply(wanted)
    assert (ChangeSet.objects.count(), list(Override.objects.values_list("name", "vo", "value"))) == before
    return [(problem.field, problem.rule) for problem in refused.value.problems]


def limits(n: int, value: int = 5) -> list[Line]:
    return [Line("prod_job_throttler", f"NQUEUELIMIT_Q{i}", value) for i in range(n)]


def test_all_lines_of_a_set_hold_together_with_one_revision() -> None:
    made = apply(draft(Line(*CAP, "0150"), Line(*NOTE, "slow", vo="atlas"), ticket="GGUS-1"))
    assert made is not None
    assert (made.revision, made.who, made.why, made.source, made.ticket) == (1, "ann", "ticket 7", "rest", "GGUS-1")
    assert [(line.name, line.vo, line.before, line.after) for line in made.lines.order_by("id")] == [
        ("NQUEUED_SAT_CAP", "", None, "150"),
        ("NOTE", "atlas", None, "slow"),
    ]
    assert (gdpconfig.value(*CAP), gdpconfig.value(*NOTE, vo="atlas"), gdpconfig.revision()) == (150, "slow", 1)


def test_lines_that_change_nothing_are_left_out_and_a_set_of_such_lines_is_none() -> None:
    apply(draft(Line(*CAP, 150)))
    made = apply(draft(Line(*CAP, "150"), Line(*NOTE, "x")))
    assert made is not None
    assert [line.name for line in made.lines.all()] == ["NOTE"]
    assert apply(draft(Line(*CAP, 150), Line("jobbroker", "NW_ACTIVE", remove=True))) is None
    assert gdpconfig.revision() == 2


def test_one_bad_line_refuses_the_whole_set_and_every_bad_line_is_named() -> None:
    wanted = draft(
        Line(*CAP, 150),
        Line("jobbroker", "NQUEUED_SAT_CPA", 1),
        Line(*CAP, "many", vo="atlas"),
        Line(*CAP, -1, vo="cms"),
        Line(*NOTE, "a\x00b"),
        Line(*NOTE, "\ud800", vo="atlas"),
        Line(*NOTE, "x", vo="no vo"),
        Line(*NOTE, "x", vo="cms", kind="shares"),
        Line(*NOTE, "x", vo="lhcb", until=clock.now() - timedelta(seconds=1)),
        why=" ",
        ticket="a\nb",
    )
    assert faults(wanted) == [
        ("why", "required"),
        ("ticket", "format"),
        ("lines[1].key", "unknown_key"),
        ("lines[2].value", "type"),
        ("lines[3].value", "range"),
        ("lines[4].value", "type"),
        ("lines[5].value", "type"),
        ("lines[6].vo", "vo"),
        ("lines[7].kind", "choice"),
        ("lines[8].until", "range"),
    ]
    with pytest.raises(BadConfig, match="did you mean NQUEUED_SAT_CAP"):
        apply(wanted)


def test_of_the_keys_that_begin_with_what_was_typed_the_shortest_is_meant() -> None:
    with pytest.raises(BadConfig, match=r"did you mean NQUEUED_SAT_CAP\?"):
        apply(draft(Line("jobbroker", "NQUEUED", 1)))


def test_one_place_stands_in_one_line() -> None:
    assert faults(draft(Line(*CAP, 1), Line(*CAP, 2))) == [("lines[0]", "twice"), ("lines[1]", "twice")]


def test_more_lines_than_a_set_may_have_are_refused_before_any_is_read() -> None:
    assert faults(draft(*limits(10_000))) == [("lines", "range")]


def test_a_thousand_bad_lines_are_told_up_to_a_measure() -> None:
    told = faults(draft(*(Line("jobbroker", f"NOPE_{i}", 1) for i in range(1000))))
    assert len(told) == 51
    assert told[-1] == ("lines", "range")


def test_the_number_of_queries_does_not_grow_with_the_lines() -> None:
    def cost(lines: list[Line]) -> int:
        with CaptureQueriesContext(
            connection,
        ) as seen:
            apply(draft(*lines))
        return len(seen)

    apply(draft(Line(*CAP, 1)))
    assert cost(limits(10)) == cost(limits(900, 6)) - 1  # these change some and add some
    assert cost(limits(10, 7)) == cost(limits(900, 8))


def test_who_looked_at_an_older_revision_is_refused_only_where_that_was_changed() -> None:
    apply(draft(Line(*CAP, 150)))
    apply(draft(Line(*CAP, 200), who="bob"))
    assert faults(draft(Line(*NOTE, "x"), Line(*CAP, 300), base=1)) == [("lines[1]", "stale")]
    with pytest.raises(BadConfig, match="bob has set it to '200'"):
        apply(draft(Line(*CAP, 300), base=1))
    assert apply(draft(Line(*NOTE, "x"), base=1)) is not None
    assert apply(draft(Line(*CAP, 300), base=3)) is not None


def test_what_was_set_and_removed_meanwhile_is_told_with_who_removed_it() -> None:
    apply(draft(Line(*CAP, 150)))
    apply(draft(Line(*CAP, remove=True), who="cid"))
    with pytest.raises(BadConfig, match="it was removed by cid"):
        apply(draft(Line(*CAP, 300), base=1))
    with pytest.raises(BadConfig, match="it was removed by cid"):
        apply(draft(Line(*CAP, 300, says_before=True, before="150")))
    assert apply(draft(Line(*CAP, 300, says_before=True, before=None))) is not None


def test_a_revision_that_was_never_made_is_no_base() -> None:
    assert faults(draft(Line(*CAP, 1), base=7)) == [("base", "range")]


def test_a_preview_says_before_and_after_and_writes_nothing() -> None:
    apply(draft(Line(*CAP, 150)))
    with CaptureQueriesContext(connection) as seen:
        steps = preview(draft(Line(*CAP, "200"), Line(*NOTE, "x"), why=""))
    assert [(str(step.place), step.before, step.after) for step in steps] == [
        ("jobbroker.NQUEUED_SAT_CAP", "150", "200"),
        ("jobbroker.NOTE", None, "x"),
    ]
    assert all(query["sql"].startswith("SELECT") for query in seen.captured_queries)
    assert not any("FOR UPDATE" in query["sql"] for query in seen.captured_queries)


def test_reverting_a_set_takes_all_of_it_back_unless_somebody_has_changed_a_part_since() -> None:
    apply(draft(Line(*CAP, 150)))
    made = apply(draft(Line(*CAP, remove=True), Line(*NOTE, "x"), Line(*NOTE, "y", vo="atlas")))
    assert made is not None
    back = revert(made, who="bob", why="wrong")
    assert back is not None
    assert (back.reverts, back.lines.count()) == (made, 3)
    assert [(o.name, o.value) for o in Override.objects.all()] == [("NQUEUED_SAT_CAP", "150")]
    assert revert(made, who="bob", why="again") is None
    again = revert(back, who="bob", why="right")
    assert again is not None
    apply(draft(Line(*NOTE, "z"), who="cid"))
    with pytest.raises(BadConfig, match="cid has set it to 'z'"):
        revert(again, who="bob", why="wrong")
    assert Override.objects.count() == 2


def test_a_temporary_value_ends_and_the_lasting_one_holds_again() -> None:
    now = clock.now()
    apply(draft(Line(*CAP, 150)))
    apply(draft(Line(*CAP, 400, until=now + timedelta(hours=1)), Line(*NOTE, "x", until=now + timedelta(hours=1))))
    apply(draft(Line(*CAP, 500, until=now + timedelta(hours=2))))
    assert end_expired(now + timedelta(minutes=59)) == 0
    assert end_expired(now + timedelta(minutes=61)) == 1
    assert (gdpconfig.value(*CAP), gdpconfig.value(*NOTE)) == (500, "")
    assert end_expired(now + timedelta(minutes=121)) == 1
    assert (gdpconfig.value(*CAP), gdpconfig.revision()) == (150, 5)
    last = ChangeSet.objects.first()
    assert last is not None
    assert (last.who, last.source) == ("expiry", "expiry")
    assert end_expired(now + timedelta(days=9)) == 0


def test_a_lasting_value_set_over_a_temporary_one_stays() -> None:
    now = clock.now()
    apply(draft(Line(*CAP, 400, until=now + timedelta(hours=1))))
    made = apply(draft(Line(*CAP, 400)))
    assert made is not None
    assert end_expired(now + timedelta(hours=2)) == 0
    with clock.frozen(now + timedelta(hours=2)), pytest.raises(BadConfig, match="was temporary and has ended"):
        revert_draft(made, who="bob", why="x", source="rest")


def test_the_lasting_value_is_given_up_where_its_key_no_longer_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock.now()
    apply(draft(Line(*CAP, 150)))
    apply(draft(Line(*CAP, 400, until=now + timedelta(hours=1))))
    narrow = keys.Keys()
    narrow.declare(
        *(key for key in keys.KEYS if key.name != CAP[1]),
        gdpconfig.Key(component=CAP[0], name=CAP[1], type="int", default=300, low=180, doc="Narrower."),
    )
    monkeypatch.setattr(keys, "KEYS", narrow)
    assert end_expired(now + timedelta(hours=2)) == 1
    assert not Override.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_who_apply_at_once_on_the_same_revision_one_wins_and_the_other_is_told() -> None:
    apply(draft(Line(*NOTE, "begin")))
    start = Barrier(2)

    def edit(author: str) -> str:
        try:
            start.wait()
            apply(draft(*limits(200), Line(*CAP, len(author)), who=author, base=1))
        except BadConfig as bad:
            assert {problem.rule for problem in bad.problems} == {"stale"}
            assert len(bad.problems) == 200
            return bad.problems[0].message
        else:
            return author
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(edit, ["ann", "bobby"]))
    winner = next(one for one in told if one in ("ann", "bobby"))
    assert f"{winner} has set it to '5'" in next(one for one in told if one != winner)
    assert Change.objects.count() == 202
    assert gdpconfig.revision() == 2


@pytest.mark.django_db(transaction=True)
def test_two_agents_that_end_the_same_override_end_it_once() -> None:
    now = clock.now()
    apply(draft(Line(*CAP, 400, until=now + timedelta(hours=1))))
    start = Barrier(2)

    def end(_: int) -> int:
        try:
            start.wait()
            return end_expired(now + timedelta(hours=2))
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(end, range(2))) == [0, 1]
    assert ChangeSet.objects.count() == 2
