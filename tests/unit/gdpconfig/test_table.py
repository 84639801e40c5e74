"""Keys declared as a table are those that `Key` makes of the same words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker_site.foundation.gdpconfig.keys import KEYS, Key
from broker_site.foundation.gdpconfig.table import declare_table


class Discarded(Exception):
    """Ends a block whose declarations are not kept."""


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    with pytest.raises(Discarded), KEYS.all_or_nothing():
        yield
        raise Discarded


def fields(key: Key) -> dict[str, object]:
    return {name: value for name, value in vars(key).items() if name not in ("parts", "literal", "_pattern")}


def test_a_table_declares_keys_of_several_components() -> None:
    def rule(value: object) -> str | None:
        return None

    declare_table(
        """
[stars]
# Light.
NEAR_<sky> | float ly | 4.2 | 0..1e3 zero_is_unset | a source; another
    How near a star is.
    It may be nearer.
COLOUR | enum red blue | red | | a source
    What colour.

[nasa:stars]
AGE | duration | unset | 1s.. | a source
    How old.
""",
        {"AGE": {"check": rule}},
    )
    doc = "How near a star is. It may be nearer."
    near = Key(
        component="stars", name="NEAR_<sky>", type="float", unit="ly", default=4.2, low=0, high=1000, doc=doc,
        zero_is_unset=True, source="a source; another",
    )  # fmt: skip
    colour = Key(
        component="stars",
        name="COLOUR",
        type="enum",
        choices=("red", "blue"),
        default="red",
        doc="What colour.",
        source="a source",
    )
    age = Key(
        component="stars",
        app="nasa",
        name="AGE",
        type="duration",
        default=None,
        low=1,
        doc="How old.",
        source="a source",
        check=rule,
    )
    declared = [KEYS.get("stars", "NEAR_<sky>"), KEYS.get("stars", "COLOUR"), KEYS.get("stars", "AGE", "nasa")]
    assert list(map(fields, declared)) == list(map(fields, (near, colour, age)))


@pytest.mark.parametrize(
    "row", ["A | int | 1 | 0..\n    No source.", "A | int | 1 | 2.. | low\n    Less than the least.", "A | int | 1 | | s"]
)
def test_a_wrong_row_is_refused(row: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        declare_table(f"[stars]\n{row}\n")
