"""Snapshots as columns: made from rows, copied with other columns; what does not fit is refused by name."""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np
import pytest

from brokerage.rules.facts.columns import BadRows
from brokerage.rules.facts.snapshot import Queues

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


def test_other_columns_are_those_of_a_copy() -> None:
    table = Queues.from_rows(ROWS)
    assert table.online.tolist() == [True, False]
    changed = table.with_columns(status=np.array(["offline", "brokeroff_for_a_long_time"]))
    assert changed.status.tolist() == ["offline", "brokeroff_for_a_long_time"]
    assert changed.online.tolist() == [False, False]
    assert table.online.tolist() == [True, False]


def test_columns_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Queues.from_rows(ROWS).maxrss[0] = 1
