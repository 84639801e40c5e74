"""The time slices by which shares of groups are corrected, as the JSON key SHARES_CORRECTION has them (facts on matching a7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, Strict

from broker_site.foundation.outside_data import OutsideDataError, read

HOUR_S = 3600.0
LONGEST_S = 90 * 24 * HOUR_S


class Slice(BaseModel):
    """A stretch of the past up to now: its length, how much it counts beside the others, and the most that it corrects."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    seconds: Annotated[float, Field(ge=HOUR_S, le=LONGEST_S)]
    weight: Annotated[float, Strict(False), Field(gt=0, le=1e6)] = 1.0
    max: Annotated[float, Strict(False), Field(ge=1, le=1e3)] = 3.0


Slices = Annotated[list[Slice], Field(max_length=10)]


def read_slices(value: Sequence[Mapping[str, Any]]) -> list[Slice]:
    """The slices of the key. Raises OutsideDataError."""
    found: list[Slice] = read(Slices, [dict(each) for each in value], "", "field of a slice")
    return found


def slice_faults(value: Any) -> str | None:
    """What is wrong with a value of the key, in one line."""
    if not isinstance(value, Sequence) or not all(isinstance(each, Mapping) for each in value):
        return 'a list is expected: [{"seconds": 604800, "weight": 80, "max": 2}]'
    try:
        read_slices(value)
    except OutsideDataError as bad:
        return str(bad)
    return None
