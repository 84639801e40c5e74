"""What may be asked of the counts over time, and how their rows become lines without gaps (decision L3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate

from broker_site.foundation.kernel.verdict import Problem
from brokerage.rules.facts.job_kind import JobKind
from brokerage.rules.facts.rollups import (
    COLUMNS,
    DAY_S,
    FIVE_MINUTES_S,
    FLOWS,
    HOUR_S,
    MINUTE_S,
    OF_ERRORS,
    STEPS,
    Family,
    step_after,
)
from brokerage.rules.facts.wait_classes import WAITS
from brokerage.states import JOB

STATES = JOB.live
WHATS = (*FLOWS, *STATES)
HAPPENED = frozenset((*FLOWS, *WAITS))
"""What is counted when it happens; all else are states, of which differences are counted."""
USUAL = ("started", "finished", "failed")
FILTERS = {"vo": "vo", "queue": "queue", "share": "share", "user": "user_name", "kind": "kind"}
"""Parameter -> the column that it narrows."""
BYS = {**FILTERS, "error": "fingerprint"}
"""By what the lines may be: parameter -> column."""
KINDS = {kind.label: kind.value for kind in JobKind}
PARAMETERS = ("what", "window", "step", "by", *FILTERS)
MOST_POINTS = 2_200
MOST_POINTS_EACH = 1_500
"""Of lines by one thing: a day by the minute, two months by the hour."""
MOST_LINES = 50
"""Lines by one thing; the others are added up in one."""
OTHERS = "(others)"
LONG_S = 31 * DAY_S
"""A window longer than that is told by the day, where nothing else is asked for."""
UNITS_S = {"m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DURATION = re.compile(r"([1-9][0-9]{0,5})(m|min|h|d|w)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: which lines, over the last `window_s` seconds, in steps of `step_s`. `only`: column -> value that it has; of a
    share several, for the leaves below one.
    """

    what: tuple[str, ...] = USUAL
    window_s: int = 86400
    step_s: int = FIVE_MINUTES_S
    by: str = ""
    only: Mapping[str, str | int | tuple[str, ...]] = field(default_factory=dict)

    @property
    def family(self) -> Family:
        """The family that counts by all that is asked for; LookupError where none does."""
        columns = {*self.only, *([BYS[self.by]] if self.by else [])}
        for family, known in COLUMNS.items():
            if columns <= set(known):
                return family
        raise LookupError(f"jobs are not counted together by {', '.join(sorted(columns))}")

    def span(self, now: datetime) -> tuple[datetime, datetime]:
        """From the beginning of the first bucket to the end of the last, which is not over yet."""
        end = step_after(now, self.step_s)
        return end - timedelta(seconds=self.window_s), end


@dataclass(frozen=True, slots=True)
class Line:
    """Numbers of one bucket after the other. `of`: for which queue, share, user, kind, VO or error; empty where it is for all."""

    what: str
    of: str
    points: Sequence[int]

    @property
    def total(self) -> int:
        return sum(self.points)


@dataclass(frozen=True, slots=True)
class Series:
    """Lines over time. The last bucket is not over yet; what happened before `counted_at` is counted, None: nothing yet."""

    start: datetime
    end: datetime
    step_s: int
    counted_at: datetime | None
    lines: Sequence[Line]

    @property
    def times(self) -> list[datetime]:
        """When each bucket begins."""
        step = timedelta(seconds=self.step_s)
        return [self.start + step * i for i in range(self.n)]

    @property
    def n(self) -> int:
        """How many buckets there are."""
        return round((self.end - self.start).total_seconds() / self.step_s)

    def line(self, what: str, of: str = "") -> Line:
        """One of the lines; of zeros where there is none."""
        return next((x for x in self.lines if x.what == what and x.of == of), None) or Line(what, of, [0] * self.n)


def read(sent: Mapping[str, str]) -> tuple[Asked | None, list[Problem]]:
    """The question that parameters put, or what is wrong with them."""
    bad = [Problem(name[:60], "unknown", f"there is: {', '.join(PARAMETERS)}") for name in sent if name not in PARAMETERS]
    bad += [Problem(name, "form", "a text without NUL") for name, text in sent.items() if name in PARAMETERS and "\0" in text]
    given = {name: text for name, text in sent.items() if text and name in PARAMETERS}
    what = tuple(dict.fromkeys(given["what"].split(","))) if "what" in given else USUAL
    if unknown := [name for name in what if name not in WHATS]:
        bad.append(Problem("what", "one_of", f"{unknown[0][:40]!r}: names of {', '.join(WHATS)}, with commas between"))
    by = given.get("by", "")
    if by and by not in BYS:
        bad.append(Problem("by", "one_of", f"one of {', '.join(BYS)}"))
        by = ""
    window_s, step_s = _lengths(given, bad)
    only: dict[str, str | int | tuple[str, ...]] = {FILTERS[name]: given[name] for name in FILTERS if name in given}
    if "kind" in given:
        if given["kind"] in KINDS:
            only["kind"] = KINDS[given["kind"]]
        else:
            bad.append(Problem("kind", "one_of", f"one of {', '.join(KINDS)}"))
    asked = Asked(what, window_s, step_s, by, only)
    try:
        family = asked.family
    except LookupError:
        together = "; ".join(", ".join(columns) for columns in COLUMNS.values()).replace("user_name", "user")
        bad.append(Problem("by", "together", f"jobs are counted by these together: {together.replace('fingerprint', 'error')}"))
    else:
        if family in OF_ERRORS and not set(what) <= set(JOB.unsuccessful):
            bad.append(Problem("what", "one_of", f"by error only {' and '.join(JOB.unsuccessful)} are counted"))
    return (None, bad) if bad else (asked, bad)


def _lengths(given: Mapping[str, str], bad: list[Problem]) -> tuple[int, int]:
    """Window and step, s."""
    window_s = _seconds(given.get("window", "24h"))
    if window_s is None:
        bad.append(Problem("window", "form", "a number with m, h, d or w, such as 1h, 24h, 7d, 90d"))
        return 86400, FIVE_MINUTES_S
    step_s = _seconds(given["step"]) if "step" in given else _usual_step(window_s)
    if step_s not in STEPS:
        bad.append(Problem("step", "one_of", "1m, 5m, 1h or 1d"))
        return window_s, HOUR_S
    most = MOST_POINTS_EACH if given.get("by") else MOST_POINTS
    if window_s % step_s or not 1 <= window_s // step_s <= most:
        each = " where each line is of one thing; a longer step reaches further back" if given.get("by") else ""
        bad.append(Problem("window", "range", f"1 to {most:,} whole steps{each}"))
    return window_s, step_s


def _usual_step(window_s: int) -> int:
    if window_s > LONG_S and window_s % DAY_S == 0:
        return DAY_S
    return next((step for step, most in ((MINUTE_S, 2 * 3600), (FIVE_MINUTES_S, 2 * 86400)) if window_s <= most), HOUR_S)


def _seconds(text: str) -> int | None:
    match = _DURATION.fullmatch(text)
    return int(match[1]) * UNITS_S[match[2]] if match else None


def filled(
    asked: Asked,
    span: tuple[datetime, datetime],
    counted_at: datetime | None,
    happened: Iterable[tuple[str, str, datetime, int]],
    levels: Iterable[tuple[str, str, int]],
) -> Series:
    """Lines without gaps. `happened`: what, of, beginning of the bucket, number; of a state by how many more jobs are in it.
    `levels`: state, of, how many are in it now. What happened may have some added up as OTHERS.

    The level at the end of a bucket is that of now less what came later.
    """
    start, end = span
    n = asked.window_s // asked.step_s
    changes: dict[tuple[str, str], list[int]] = {}
    for what, of, at, number in happened:
        i = int((at - start).total_seconds()) // asked.step_s
        if 0 <= i < n:
            changes.setdefault((what, of), [0] * n)[i] += number
    now = {(what, of): number for what, of, number in levels}
    for key in now:
        changes.setdefault(key, [0] * n)
    if not asked.by:
        for what in asked.what:
            changes.setdefault((what, ""), [0] * n)
    lines = [
        Line(what, of, points if what in HAPPENED else _levels(points, now.get((what, of), 0)))
        for (what, of), points in changes.items()
    ]
    return Series(start, end, asked.step_s, counted_at, _largest(asked, [x for x in lines if not asked.by or any(x.points)]))


def _levels(changes: Sequence[int], now: int) -> list[int]:
    later = list(accumulate(reversed(changes[1:]), initial=0))
    return [max(0, now - n) for n in reversed(later)]


def _largest(asked: Asked, lines: Sequence[Line]) -> list[Line]:
    """In the order of `what`, then the largest first; by one thing at most MOST_LINES of each, the others added up."""
    kept: list[Line] = []
    for what in asked.what:
        of_what = sorted(
            (line for line in lines if line.what == what), key=lambda line: (line.of == OTHERS, -line.total, line.of)
        )
        first = [line for line in of_what[:MOST_LINES] if line.of != OTHERS]
        kept += first
        if rest := of_what[len(first) :]:
            kept.append(Line(what, OTHERS, [sum(column) for column in zip(*(line.points for line in rest), strict=True)]))
    return kept
