"""Prepared statements get their values exactly as they were given, whatever way these are written."""

from __future__ import annotations

import math
from typing import Any
from uuid import UUID

import pytest

from broker_site.foundation.sql.prepared import Prepared

pytestmark = pytest.mark.django_db

HERE = UUID("0f9d3a52-7c1e-4f0b-9a77-1f2e3d4c5b6a")
ALL_KINDS = Prepared("tests_all_kinds", "bigint, float8, uuid, text, boolean, bigint[]", "SELECT $1, $2, $3::text, $4, $5, $6")
NUMBERS = Prepared("tests_numbers", "bigint, float8, uuid, int", "SELECT $1, $2, $3::text, $4")


@pytest.mark.parametrize(
    "values",
    [
        pytest.param((-(2**63), 0.1 + 0.2, HERE, "'; SELECT 1 --", True, [1, -2]), id="least"),
        pytest.param((2**63 - 1, -5e-324, HERE, "%s \\ $1", False, []), id="largest"),
        pytest.param((0, math.inf, HERE, "", None, [0]), id="infinite"),
        pytest.param((None, None, None, None, None, None), id="nothing"),
    ],
)
def test_values_of_all_kinds_come_back(values: tuple[Any, ...]) -> None:
    assert ALL_KINDS.run(*values) == [tuple(str(value) if isinstance(value, UUID) else value for value in values)]


@pytest.mark.parametrize(
    ("number", "real"),
    [(-(2**63), 0.1 + 0.2), (2**63 - 1, -5e-324), (0, -1.7976931348623157e308), (7, math.inf), (8, 1e22)],
)
def test_numbers_and_uuids_come_back(number: int, real: float) -> None:
    assert NUMBERS.run(number, real, HERE, -number % 2) == [(number, real, str(HERE), -number % 2)]
