"""Setting, removing and reverting configuration on a real PostgreSQL: what is kept, what is refused, and in which order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Barrier

import pytest
from django.db import DatabaseError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker_site.foundation import gdpconfig
from broker_site.foundation.gdpconfig import BadConfig, keys
from broker_site.foundation.gdpconfig.listing import effective
from broker_site.foundation.gdpconfig.models import Change, ChangeSet, Override, Revision

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("declared")]

CAP = ("jobbroker", "NQUEUED_SAT_CAP")


def set_cap(value: object, **more: object) -> Change | None:
    return gdpconfig.set_override(*CAP, value, **{"who": "ann", "why": "ticket 7", **more})  # type: ignore[arg-type]


def test_an_override_is_read_at_once_where_it_was_set() -> None:
    assert gdpconfig.value(*CAP) == 300
    set_cap("150")
    assert gdpconfig.value(*CAP) == 150
    assert gdpconfig.component("jobbroker")["NQUEUED_SAT_CAP"] == 150
    assert gdpconfig.revision() == 1


def test_a_vo_has_its_own_override() -> None:
    set_cap("150")
    set_cap("10", vo="atlas")
    assert (gdpconfig.value(*CAP), gdpconfig.value(*CAP, vo="atlas"), gdpconfig.value(*CAP, vo="wlcg")) == (150, 10, 150)


def test_a_pattern_key_is_set_with_its_parts_filled_in() -> None:
    gdpconfig.set_override("agents", "PERIOD_reap", "0.2s", who="ann", why="tests")
    assert gdpconfig.value("agents", "PERIOD_<agent>", agent="reap") == 0.2
    assert gdpconfig.value("agents", "PERIOD_<agent>", agent="feed") == 10.0


def test_history_says_who_changed_what_from_what_to_what_and_why() -> None:
    set_cap("150")
    set_cap(200, who="bob", why="too small")
    gdpconfig.remove_override(*CAP, who="cid", why="over")
    said = [(c.change_set_id, c.who, c.why, c.before, c.after) for c in Change.objects.order_by("id")]
    assert said == [(1, "ann", "ticket 7", None, "150"), (2, "bob", "too small", "150", "200"), (3, "cid", "over", "200", None)]
    assert gdpconfig.value(*CAP) == 300


def test_a_change_is_reverted_by_another_change_that_names_it() -> None:
    first, second = set_cap("150"), set_cap("200")
    assert first is not None
    assert second is not None
    made = gdpconfig.revert(second.change_set, who="bob", why="was wrong")
    assert made is not None
    line = made.lines.get()
    assert (line.before, line.after, made.reverts) == ("200", "150", second.change_set)
    assert gdpconfig.value(*CAP) == 150
    gdpconfig.revert(first.change_set, who="bob", why="back to the default")
    assert not Override.objects.exists()
    assert Change.objects.count() == 4


def test_a_revert_can_be_reverted() -> None:
    set_cap("150")
    second = set_cap("200")
    assert second is not None
    undone = gdpconfig.revert(second.change_set, who="bob", why="was wrong")
    assert undone is not None
    gdpconfig.revert(undone, who="bob", why="was right")
    assert gdpconfig.value(*CAP) == 200


def test_setting_what_is_set_or_removing_what_is_not_leaves_no_trace() -> None:
    assert gdpconfig.remove_override(*CAP, who="ann", why="tidy") is None
    set_cap("150")
    assert set_cap(150) is None
    assert gdpconfig.revision() == Change.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "value", "vo", "why", "problems"),
    [
        ("NQUEUED_SAT_CAP", "-1", "", "x", [("value", "range")]),
        ("NQUEUED_SAT_CAP", "many", "", "x", [("value", "type")]),
        ("NQUEUED_SAT_CPA", "1", "", "x", [("key", "unknown_key")]),
        ("MODEL", "globl", "", "x", [("value", "choice")]),
        ("NQUEUED_SAT_CAP", "1", "no vo", " ", [("vo", "vo"), ("why", "required")]),
        ("NOTE", "a\x00b", "", "a\x00b", [("value", "type"), ("why", "required")]),
    ],
)
def test_what_is_refused_changes_nothing_and_names_each_problem(
    name: str, value: str, vo: str, why: str, problems: list[tuple[str, str]]
) -> None:
    with pytest.raises(BadConfig) as caught:
        gdpconfig.set_override("jobbroker", name, value, who="ann", why=why, vo=vo)
    assert [(problem.field, problem.rule) for problem in caught.value.problems] == problems
    assert not Change.objects.exists()


def test_an_author_who_saw_an_older_value_is_told_the_newer_one() -> None:
    change = set_cap("150", seen=0)
    assert change is not None
    set_cap("200", who="bob", seen=change.change_set_id)
    with pytest.raises(BadConfig, match="bob has set it to '200'"):
        set_cap("250", seen=change.change_set_id)
    assert gdpconfig.value(*CAP) == 200


def test_an_override_whose_key_is_gone_does_no_harm_and_can_be_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    set_cap("150")
    fewer = keys.Keys()
    fewer.declare(*(key for key in keys.KEYS if key.name != "NQUEUED_SAT_CAP"))
    monkeypatch.setattr(keys, "KEYS", fewer)
    gdpconfig.forget()
    assert gdpconfig.value("jobbroker", "NW_ACTIVE") is True
    assert [row.settings[0].fault for row in effective() if row.key is None] == [
        "unknown configuration key jobbroker.NQUEUED_SAT_CAP of app jedi"
    ]
    assert gdpconfig.remove_override(*CAP, who="ann", why="gone") is not None


def test_pages_get_default_override_and_who_set_it_when_and_why() -> None:
    set_cap("150")
    set_cap("10", vo="atlas", who="bob", why="slow links")
    row = next(row for row in effective() if row.name == "NQUEUED_SAT_CAP")
    assert (row.default, row.effective) == ("300", "150")
    assert [(s.vo, s.text, s.change.who, s.change.why) for s in row.settings] == [
        ("", "150", "ann", "ticket 7"),
        ("atlas", "10", "bob", "slow links"),
    ]
    limits = next(row for row in effective() if row.name == "NQUEUELIMIT_<queue>")
    assert (limits.default, limits.settings) == ("unset", ())


def test_what_a_transaction_sets_and_rolls_back_is_never_seen_afterwards() -> None:
    assert gdpconfig.value(*CAP) == 300
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        set_cap("150")
        assert gdpconfig.value(*CAP) == 150
        _ = 1 / 0
    assert gdpconfig.value(*CAP) == 300


def test_reading_costs_no_query_while_the_copy_is_fresh_and_one_small_one_after(django_assert_num_queries: object) -> None:
    gdpconfig.value(*CAP)
    with django_assert_num_queries(0):  # type: ignore[operator]
        for _ in range(100):
            gdpconfig.value(*CAP, vo="atlas")
            gdpconfig.component("jobbroker")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE gdpconfig_change SET after = 'other'",
        "DELETE FROM gdpconfig_change",
        "UPDATE gdpconfig_changeset SET why = 'other'",
    ],
)
def test_the_database_refuses_to_rewrite_history(statement: str) -> None:
    set_cap("150")
    with pytest.raises(DatabaseError, match="cannot be altered or deleted"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM gdpconfig_override")
        cursor.execute(statement)


@pytest.mark.django_db(transaction=True)
def test_concurrent_edits_are_all_kept_in_one_order() -> None:
    start = Barrier(4)

    def edit(author: int) -> None:
        try:
            start.wait()
            for step in range(10):
                set_cap(1000 * author + step, who=f"author {author}")
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(edit, range(1, 5)))
    changes = list(Change.objects.select_related("change_set").order_by("id"))
    assert [change.change_set_id for change in changes] == list(range(1, 41))
    assert changes[0].before is None
    assert all(later.before == earlier.after for earlier, later in pairwise(changes))
    assert all(earlier.at <= later.at for earlier, later in pairwise(changes))
    assert Override.objects.get().value == changes[-1].after
    assert Revision.objects.get().number == 40


@pytest.mark.django_db(transaction=True)
def test_two_authors_who_saw_the_same_value_cannot_both_win() -> None:
    start = Barrier(2)

    def edit(author: str) -> bool:
        try:
            start.wait()
            return set_cap(f"{len(author)}", who=author, seen=0) is not None
        except BadConfig:
            return False
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(edit, ["ann", "bobby"])) == [False, True]


EDITS = st.tuples(
    st.sampled_from(["NQUEUED_SAT_CAP", "NW_ACTIVE", "NOTE", "GROUPS", "MODEL", "NOPE"]),
    st.text(max_size=15)
    | st.integers()
    | st.booleans()
    | st.floats()
    | st.sampled_from(["5", "true", "global", '{"a": [1]}', "unset"]),
    st.sampled_from(["", "atlas", "bad vo"]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(EDITS, max_size=8))
def test_any_series_of_edits_is_refused_with_a_message_or_kept_with_its_history(edits: list[tuple[str, object, str]]) -> None:
    with transaction.atomic():
        kept = 0
        for name, value, vo in edits:
            try:
                kept += gdpconfig.set_override("jobbroker", name, value, who="ann", why="x", vo=vo) is not None
            except BadConfig as bad:
                assert all(problem.message for problem in bad.problems)
        gdpconfig.component("jobbroker", vo="atlas")
        assert gdpconfig.current().faults == ()
        assert Change.objects.count() == gdpconfig.revision() == kept
        for made in ChangeSet.objects.order_by("-revision")[:kept]:
            gdpconfig.revert(made, who="ann", why="all back")
        assert not Override.objects.exists()
        transaction.set_rollback(True)
