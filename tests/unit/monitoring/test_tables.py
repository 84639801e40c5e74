"""Places in lists, selections from addresses, cells of exports: all without a database."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice, repeat

import pytest
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from broker_site.foundation.rest import keyset
from broker_site.foundation.rest.keyset import BadCursor, Count, Cursor
from brokerage.api.filtering import JobFilter
from monitoring.tables.exports import cell, csv_lines, json_answer, plain
from monitoring.tables.selection import read, unknown
from workqueues.api.filtering import TaskFilter


@dataclass(frozen=True)
class Line:
    id: int
    name: str
    at: datetime | None = None


@given(st.sampled_from(["older", "newer"]), st.integers(0, 2**63 - 1))
def test_a_place_in_a_list_survives_its_way_through_an_address(direction: str, row_id: int) -> None:
    cursor = Cursor(direction, row_id, "jobs")  # type: ignore[arg-type]
    assert Cursor.read(cursor.text(), "jobs") == cursor
    assert row_id < 1000 or str(row_id) not in cursor.text().split(":")[0]


@pytest.mark.parametrize(
    "text",
    ["", "7", "[1]", "WyJvIiw1XQ", Cursor("older", 5, "jobs").text()[:-2] + "xx"],
    ids=["nothing", "a number", "a list", "unsigned", "wrong signature"],
)
def test_a_place_that_we_did_not_give_is_refused(text: str) -> None:
    with pytest.raises(BadCursor) as refused:
        Cursor.read(text, "jobs")
    assert refused.value.rule == "format"


def test_a_place_in_another_list_or_of_long_ago_is_refused_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    text = Cursor("older", 5, "jobs").text()
    with pytest.raises(BadCursor) as foreign:
        Cursor.read(text, "tasks")
    later = time.time() + keyset.KEPT_S + 60
    monkeypatch.setattr("django.core.signing.time.time", lambda: later)
    with pytest.raises(BadCursor) as expired:
        Cursor.read(text, "jobs")
    assert (foreign.value.rule, expired.value.rule) == ("foreign", "expired")


def test_a_count_that_stopped_early_says_so() -> None:
    assert (str(Count(37, more=False)), str(Count(10_000, more=True))) == ("37", "10,000+")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\n=x"])
def test_no_text_of_a_cell_is_taken_for_a_formula(text: str) -> None:
    assert cell(text) == f"'{text}"


def test_numbers_times_and_nothing_in_a_cell() -> None:
    zurich = timezone(timedelta(hours=2))
    assert [cell(v) for v in (-5, 1.5, None, True, datetime(2026, 10, 25, 2, 30, tzinfo=zurich), ("a", "b"))] == [
        -5, 1.5, "", "true", "2026-10-25T00:30:00.000Z", "a b",
    ]  # fmt: skip


def test_json_has_the_same_times() -> None:
    answer = json_answer([Line(1, "a", datetime(2026, 1, 1, tzinfo=UTC))], {"next": None})
    assert json.loads(answer.content) == {"rows": [{"id": 1, "name": "a", "at": "2026-01-01T00:00:00.000Z"}], "next": None}
    assert plain("x") == "x"


def test_csv_is_sent_while_it_is_read_however_long_it_is() -> None:
    sent = csv_lines(Line, repeat(Line(1, 'a,"b"')))
    assert list(islice(sent, 200_000, 200_002)) == ['1,"a,""b""",\r\n'] * 2


def test_an_unknown_parameter_is_a_warning_with_the_nearest_name() -> None:
    (warning,) = unknown(QueryDict("task_nmae=x"), tuple(TaskFilter.base_filters))
    assert "task_nmae" in warning and "“task_name”" in warning
    (problem,) = read(QueryDict("task_nmae=x"), TaskFilter).unknown
    assert (problem.field, problem.rule) == ("task_nmae", "unknown")


def test_names_that_people_use_are_those_of_the_filters() -> None:
    selection = read(QueryDict("name=a*&user=ada&status=running,pending"), TaskFilter)
    assert not selection.unknown and not selection.tidy
    assert selection.address() == "?status=running,pending&task_name=a%2A&user_name=ada"
    assert read(QueryDict("task_id=7&computing_queue=A"), JobFilter).address() == "?task=7&queue=A"


def test_the_address_keeps_the_filters_and_leaves_out_what_is_blank() -> None:
    selection = read(QueryDict("task_name=&vo=demo&limit=5"), TaskFilter)
    assert not selection.tidy
    assert selection.address(cursor="c") == "?vo=demo&limit=5&cursor=c"
    assert read(QueryDict("vo=demo&limit=5"), TaskFilter).tidy


@pytest.mark.parametrize(
    ("query", "name"),
    [("limit=0", "limit"), ("limit=1001", "limit"), ("limit=a", "limit"), ("cursor=zz", "cursor"), ("live=maybe", "live")],
)
def test_what_cannot_be_used_is_told(query: str, name: str) -> None:
    assert set(read(QueryDict(query), TaskFilter).faults) == {name}
