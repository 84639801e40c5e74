"""Which regular expressions a share may have: those that end soon on every text, which Python's own do not promise.

Python tries the ways of reading a text one after the other. Here: a bound of these ways, by a closed grammar of what an
expression may be made of (letters, classes, groups, alternatives, repetitions, ^ and $). Not here: matching (`share_mapping`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 128
"""Characters of an attribute that are looked at; the columns are no longer."""

MOST_ENDLESS = 3
"""So many repetitions without end, one after the other, give the ways of reading a text that an expression may have."""

MOST_TIMES = 10
"""Repetitions of a part that can itself be read in several ways."""

_COUNT = re.compile(r"\{(\d*)(,?)(\d*)\}")
_ESCAPED = frozenset("dDwWsSbBAZtnrfv")
_BETWEEN = frozenset("^$")
_BETWEEN_ESCAPED = frozenset("bBAZ")
"""What stands between characters and reads none."""


def pattern_fault(pattern: str, longest: int = LONGEST) -> str:
    """What is wrong with a regular expression for texts of so many characters at most; empty if nothing."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"no regular expression: {error}"
    try:
        ways = _Reader(pattern, longest).whole()
    except _BadPart as error:
        return str(error)
    most = _most_ways(longest)
    return f"it can be read in more than {most} ways: use fewer * + ? and |" if ways > most else ""


def _most_ways(longest: int) -> int:
    return int((longest + 1) ** MOST_ENDLESS)


class _BadPart(ValueError):
    """A part that is not allowed; the message says where and why."""


@dataclass(slots=True)
class _Reader:
    """Reads an expression that compiles, and counts in how many ways its parts can be read.

    `empty`: whether the part that was read last can be read in no character of the text.
    """

    text: str
    longest: int
    at: int = 0
    deep: int = 0
    empty: bool = True

    def whole(self) -> int:
        ways = self._alternatives()
        if self.at < len(self.text):
            raise self._bad_part(f"expected the end, found {self.text[self.at]!r}")
        return ways

    def _alternatives(self) -> int:
        ways, empty = self._sequence(), self.empty
        while self._next("|"):
            ways += self._sequence()
            empty = empty or self.empty
        self.empty = empty
        return ways

    def _sequence(self) -> int:
        ways, empty = 1, True
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            ways *= self._repeated()
            empty = empty and self.empty
        self.empty = empty
        return ways

    def _repeated(self) -> int:
        begin = self.at
        ways = self._atom()
        low, high = self._count()
        if (low, high) == (1, 1):
            return ways
        if ways == 1 and self.empty and high > 1:
            raise _BadPart(f"at character {begin + 1}: what reads no character may not be repeated")
        self.empty = self.empty or low == 0
        if ways == 1:
            return max(min(high, self.longest) - low + 1, 1)
        if high > MOST_TIMES:
            raise _BadPart(f"at character {begin + 1}: what is repeated without end may not itself have *, +, ?, {{}} or |")
        return min(sum(int(ways**times) for times in range(low, high + 1)), _most_ways(self.longest) + 1)

    def _atom(self) -> int:
        if self._next("("):
            if self._next("?") and not self._next(":"):
                raise self._bad_part("only plain groups and (?: are allowed")
            self.deep += 1
            if self.deep > 20:
                raise self._bad_part("at most 20 groups inside one another")
            ways = self._alternatives()
            self.deep -= 1
            self.at += 1
            return ways
        self.empty = self.text[self.at] in _BETWEEN
        if self._next("["):
            self._class()
        elif self._next("\\"):
            self.empty = self.text[self.at] in _BETWEEN_ESCAPED
            if self.text[self.at].isalnum() and self.text[self.at] not in _ESCAPED:
                raise self._bad_part(f"\\{self.text[self.at]} is not allowed")
            self.at += 1
        else:
            self.at += 1
        return 1

    def _class(self) -> None:
        """To the end of a class, of which one character is read."""
        self._next("^")
        self._next("]")
        while not self._next("]"):
            self.at += 2 if self.text[self.at] == "\\" else 1

    def _count(self) -> tuple[int, int]:
        """How often the part before may be read, at least and at most."""
        times = (1, 1)
        if self._next("*"):
            times = (0, self.longest)
        elif self._next("+"):
            times = (1, self.longest)
        elif self._next("?"):
            times = (0, 1)
        elif (count := _COUNT.match(self.text, self.at)) and count[0] != "{}":
            self.at = count.end()
            low = int(count[1] or 0)
            times = (low, low if not count[2] else int(count[3]) if count[3] else self.longest)
        else:
            return times
        if self.at < len(self.text) and self.text[self.at] in "?+":
            self.at += 1
        return times

    def _next(self, character: str) -> bool:
        """Go over a character if it stands here."""
        if self.text.startswith(character, self.at):
            self.at += 1
            return True
        return False

    def _bad_part(self, why: str) -> _BadPart:
        return _BadPart(f"at character {self.at + 1}: {why}")
