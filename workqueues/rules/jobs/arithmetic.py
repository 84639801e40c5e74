"""Arithmetic in placeholders, `${SEQNUMBER/M[#*2+1]}`: a closed grammar over whole numbers, `#` the value; no code is run.

Operators `+ - * // / %`, a sign, brackets. `/` gives a fraction where it does not go up. Source: facts on splitting 8.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

Formula = Callable[[int], str]
"""From the value to the text that replaces the placeholder; ZeroDivisionError where the value makes it divide by zero."""

_Step = Callable[[Fraction], Fraction]
_TOKEN = re.compile(r"\s*(?:(\d{1,18})|(//|[-+*/%()#]))")
LONGEST = 100
"""Most characters of a formula."""
_DEEPEST = 20
_SAMPLES = (10**18 - 1, *range(LONGEST // 2))
_OPERATORS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: Fraction(a // b),
    "%": lambda a, b: a % b,
}


class MalformedFormula(ValueError):
    """A formula that the grammar does not know; the message says where and why."""


@lru_cache(maxsize=1024)
def formula(text: str) -> Formula:
    """The meaning of `text`; MalformedFormula if it has none."""
    if len(text) > LONGEST:
        raise MalformedFormula(f"a formula of {len(text)} characters, at most {LONGEST}")
    reader = _Reader(_tokens(text))
    step = reader.sum(0)
    if reader.tokens:
        raise MalformedFormula(f"{reader.tokens[0]!r} where the formula {text!r} should end")
    return lambda value: _written(step(Fraction(value)))


def _tokens(text: str) -> list[str]:
    tokens, end = [], 0
    while text[end:].strip():
        match = _TOKEN.match(text, end)
        if match is None:
            raise MalformedFormula(
                f"{text[end:].strip()[:10]!r} is no part of a formula: whole numbers, #, + - * / // % and brackets"
            )
        tokens.append(match[1] or match[2])
        end = match.end()
    return tokens


def _written(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else str(float(value))


class _Reader:
    """Recursive descent: a sum of products of signed values."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens

    def sum(self, depth: int) -> _Step:
        return self._chain(("+", "-"), self._product, depth)

    def _product(self, depth: int) -> _Step:
        return self._chain(("*", "/", "//", "%"), self._value, depth)

    def _chain(self, operators: tuple[str, ...], part: Callable[[int], _Step], depth: int) -> _Step:
        left = part(depth)
        while self.tokens and self.tokens[0] in operators:
            operator = self.tokens.pop(0)
            right = part(depth)
            if operator not in ("+", "-", "*") and _is_nothing(right):
                raise MalformedFormula("the formula divides by 0, whatever the value is")
            left = _applied(_OPERATORS[operator], left, right)
        return left

    def _value(self, depth: int) -> _Step:
        if not self.tokens:
            raise MalformedFormula("the formula ends where a number or # is expected")
        if depth > _DEEPEST:
            raise MalformedFormula(f"a formula nested deeper than {_DEEPEST} levels")
        word = self.tokens.pop(0)
        if word == "#":
            return lambda value: value
        if word.isdigit():
            number = Fraction(int(word))
            return lambda value: number
        if word in ("+", "-"):
            sign, inner = (-1 if word == "-" else 1), self._value(depth + 1)
            return lambda value: sign * inner(value)
        if word == "(":
            inside = self.sum(depth + 1)
            if not self.tokens or self.tokens.pop(0) != ")":
                raise MalformedFormula("a bracket of the formula is not closed")
            return inside
        raise MalformedFormula(f"{word!r} where a number or # is expected")


def _is_nothing(step: _Step) -> bool:
    """Whether it is 0 for more values than a formula of this length has places where it becomes 0 by chance."""
    try:
        return not any(step(Fraction(value)) for value in _SAMPLES)
    except ZeroDivisionError:
        return False


def _applied(operator: Callable[[Fraction, Fraction], Fraction], left: _Step, right: _Step) -> _Step:
    return lambda value: operator(left(value), right(value))
