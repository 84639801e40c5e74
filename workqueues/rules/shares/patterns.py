"""Which regular expressions a share may have: those that end soon on every text, which Python's own do not promise.

Python tries the ways of reading a text one after the other. Here: a bound of these ways, by a closed grammar of what an
expression may be made of (letters, classes, groups, alternatives, repetitions, ^ and $). Not here: matching (`share_mapping`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 128
"""Characters of an attribute that are looked at; the columns are no longer."""

MOST_WAYS = (LONGEST + 1) ** 3
"""Ways of reading a text that an expression may have: three repetitions without end, one after the other."""

MOST_TIMES = 10
"""Repetitions of a part that can itself be read in several ways."""

_COUNT = re.compile(r"\{(\d*)(,?)(\d*)\}")
_ESCAPED = frozenset("dDwWsSbBAZtnrfv")


def pattern_fault(pattern: str) -> str:
    """What is wrong with a regular expression; empty if nothing."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"no regular expression: {error}"
    try:
        ways = _Reader(pattern).whole()
    except _BadPart as error:
        return str(error)
    return f"it can be read in more than {MOST_WAYS} ways: use fewer * + ? and |" if ways > MOST_WAYS else ""


class _BadPart(ValueError):
    """A part that is not allowed; the message says where and why."""


@dataclass(slots=True)
class _Reader:
    """Reads an expression that compiles, and counts in how many ways its parts can be read."""

    text: str
    at: int = 0
    deep: int = 0

    def whole(self) -> int:
        ways = self._alternatives()
        if self.at < len(self.text):
            raise self._bad_part(f"expected the end, found {self.text[self.at]!r}")
        return ways

    def _alternatives(self) -> int:
        ways = self._sequence()
        while self._next("|"):
            ways += self._sequence()
        return ways

    def _sequence(self) -> int:
        ways = 1
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            ways *= self._repeated()
        return ways

    def _repeated(self) -> int:
        begin = self.at
        ways = self._atom()
        low, high = self._count()
        if (low, high) == (1, 1):
            return ways
        if ways == 1:
            return max(min(high, LONGEST) - low + 1, 1)
        if high > MOST_TIMES:
            raise _BadPart(f"at character {begin + 1}: what is repeated without end may not itself have *, +, ?, {{}} or |")
        return min(sum(int(ways**times) for times in range(low, high + 1)), MOST_WAYS + 1)

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
        if self._next("["):
            self._class()
        elif self._next("\\"):
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
            times = (0, LONGEST)
        elif self._next("+"):
            times = (1, LONGEST)
        elif self._next("?"):
            times = (0, 1)
        elif (count := _COUNT.match(self.text, self.at)) and count[0] not in ("{}", "{,}"):
            self.at = count.end()
            low = int(count[1] or 0)
            times = (low, low if not count[2] else int(count[3]) if count[3] else LONGEST)
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
