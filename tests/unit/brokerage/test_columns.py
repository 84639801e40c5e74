"""Snapshots as columns: made from rows, changed for what-if, kept as bytes; what does not fit is refused by name."""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from brokerage.rules.facts.columns import BadRows
from brokerage.rules.facts.snapshot import Nuclei, Queues
from tests.unit.brokerage.grids import grids

ROWS: list[dict[str, Any]] = [
    {"name": "B", "maxrss": 4000, "status": "offline"},
    {"name": "A", "maxrss": None, "direct_access_lan": True},
]


def test_rows_stand_in_the_order_of_their_names_and_nulls_take_defaults() -> None:
    table = Queues.from_rows(ROWS)
    assert table.name.tolist() == ["A", "B"]
    assert table.maxrss.tolist() == [0.0, 4000.0]
    assert table.online.tolist() == [True, False]
    assert isnan(table.space_gb[0])
    assert table.row(1)["maxrss"] == 4000.0


@settings(max_examples=40, deadline=None)
@given(grids)
def test_bytes_give_the_same_table_again(rows: list[dict[str, Any]]) -> None:
    table = Queues.from_rows(rows)
    again = Queues.from_bytes(table.to_bytes())
    assert again.to_bytes() == table.to_bytes()
    for column in table.kinds():
        mine, read = getattr(table, column), getattr(again, column)
        assert mine.dtype.kind == read.dtype.kind
        assert np.array_equal(mine, read, equal_nan=mine.dtype.kind == "f")


def test_a_thousand_queues_take_few_bytes() -> None:
    rows = [
        {"name": f"SITE{i // 3}_Q{i}", "site": f"SITE{i // 3}", "running": i % 71, "maxrss": 2000 * (1 + i % 8)}
        for i in range(1000)
    ]
    assert len(Queues.from_rows(rows).to_bytes()) < 20_000


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([{"name": "A", "colour": 1}], "colour"),
        ([{"name": "A"}, {"name": "A"}], "same name"),
        ([{"name": "A", "maxrss": "much"}], "maxrss"),
        ([{"name": "A", "running": 1.5}], "whole"),
        ([{"name": "A", "direct_access_lan": "yes"}], "direct_access_lan"),
    ],
)
def test_rows_that_make_no_table_are_refused(rows: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(BadRows, match=says):
        Queues.from_rows(rows)


@pytest.mark.parametrize("packed", [b"", b"\x09abc", Nuclei.from_rows([]).to_bytes()])
def test_other_bytes_are_refused(packed: bytes) -> None:
    with pytest.raises(BadRows):
        Queues.from_bytes(packed)


def test_what_if_changes_a_copy_for_one_or_for_all() -> None:
    table = Queues.from_rows(ROWS)
    changed = table.with_values({"*": {"status": "brokeroff_for_a_long_time"}, "A": {"maxrss": 9000, "direct_access_lan": False}})
    assert changed.status.tolist() == ["brokeroff_for_a_long_time"] * 2
    assert changed.maxrss.tolist() == [9000.0, 4000.0]
    assert table.maxrss.tolist() == [0.0, 4000.0]
    assert table.online.tolist() == [True, False]
    assert changed.online.tolist() == [False, False]


@pytest.mark.parametrize("changes", [{"C": {"maxrss": 1}}, {"A": {"colour": 1}}, {"A": {"name": "B"}}, {"A": {"maxrss": "x"}}])
def test_what_if_with_unknown_names_is_refused(changes: dict[str, dict[str, Any]]) -> None:
    with pytest.raises(BadRows):
        Queues.from_rows(ROWS).with_values(changes)


def test_columns_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Queues.from_rows(ROWS).maxrss[0] = 1
