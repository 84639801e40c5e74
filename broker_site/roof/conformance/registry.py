"""Which function answers a case: chosen by its family and the keys of what is given and expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from broker_site.roof.conformance.cases import Case

Given = Mapping[str, Any]
Answer = Mapping[str, Any]

ANY = "*"
"""Among the keys that are answered: all of them, as they are names of the case."""


class Values(dict[str, Any]):
    """What a case gives, without its nulls: a key that is null or absent reads as None, not given."""

    def __init__(self, given: Given) -> None:
        super().__init__({key: value for key, value in given.items() if value is not None})

    def __missing__(self, key: str) -> None:
        return None


class NoFunction(LookupError):
    """No function is mapped to the family of a case, or none to the keys that it has."""


@dataclass(frozen=True, slots=True)
class CaseFunction:
    """A function for cases of a family: keys that a case must give, keys that it may give, keys of the answer."""

    needed: frozenset[str]
    allowed: frozenset[str]
    answered: frozenset[str]
    function: Callable[[Given], Answer]

    def takes(self, case: Case) -> bool:
        """Whether the case has the keys of this function."""
        given = case.given.keys() - {"tolerance"}
        answered = ANY in self.answered or case.expect.keys() <= self.answered
        return self.needed <= given <= self.allowed and answered


FAMILIES: dict[str, list[CaseFunction]] = {}
"""Family -> its functions."""


def family(name: str, *, given: str, expect: str) -> Callable[[Callable[[Given], Answer]], Callable[[Given], Answer]]:
    """Map a family's cases with these keys to a function; keys in [brackets] may be absent.

    The function gets what is given as `Values` (null and absent = None), and renames and converts units, nothing else.
    """
    words = given.split()
    optional = {word.strip("[]") for word in words if word.startswith("[")}
    needed = frozenset(word for word in words if not word.startswith("["))

    def declare(function: Callable[[Given], Answer]) -> Callable[[Given], Answer]:
        entry = CaseFunction(needed, needed | optional, frozenset(expect.split()), function)
        FAMILIES.setdefault(name, []).append(entry)
        return function

    return declare


def answer(case: Case) -> Answer:
    """The answer of the real function to a case. Raises NoFunction, or what the function raises."""
    if case.family not in FAMILIES:
        raise NoFunction(f"the family {case.family!r} is not known")
    for entry in FAMILIES[case.family]:
        if entry.takes(case):
            return entry.function(Values(case.given))
    raise NoFunction(f"no function of the family {case.family!r} takes these keys")
