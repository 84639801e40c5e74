"""Plots over time that the server draws as SVG: lines or stacked areas with axes, units and legend, and the same as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst

WIDTH, WIDE, HEIGHT = 720, 1_200, 220
LEFT, RIGHT, TOP, BOTTOM = 52, 8, 10, 24
"""Room for the axes, in the units of the picture."""
LETTER = 10
"""Width of a letter of the axes, at most: on a narrow screen."""
TICKS = 4
"""Lines across, at most one more."""
DAY_S, HOUR_S = 86_400, 3_600
ROWS = 28
"""Rows of a table, at most: buckets are taken together until it has no more."""
MARKS_S = (10, 60, 600, 3 * HOUR_S, DAY_S, 7 * DAY_S, 14 * DAY_S)
"""Distances of the times along the lower edge; the first that gives no more than MOST_MARKS."""
MOST_MARKS = 9


def long(seconds: int) -> str:
    """A length of time in its largest whole unit: `5 min`, `12 h`, `2 d`; `h` for one hour."""
    for size, unit in ((DAY_S, "d"), (HOUR_S, "h"), (60, "min"), (1, "s")):
        if seconds % size == 0:
            return unit if seconds == size else f"{seconds // size} {unit}"
    return f"{seconds} s"


@dataclass(frozen=True, slots=True)
class Curve:
    """Numbers of one bucket after the other. `colour`: a class of the style sheet."""

    name: str
    colour: str
    points: Sequence[float]


@dataclass(frozen=True, slots=True)
class Row:
    """Some buckets together, and a number of each curve."""

    at: datetime
    numbers: Sequence[float]


@dataclass(frozen=True, slots=True)
class Plot:
    """Curves over buckets of one length: what happened in each of them, or `levels`, how many there were at its end. `stacked`:
    levels, one above the other. `of_steps`: levels that say how it was in each bucket, not at its end. `of`: what is counted.
    `width`: of the picture, in its own units, of which its letters have 12.
    """

    title: str
    times: Sequence[datetime]
    step_s: int
    curves: Sequence[Curve]
    stacked: bool = False
    width: int = WIDTH
    levels: bool = False
    of: str = "jobs"
    of_steps: bool = False

    @property
    def at_end(self) -> bool:
        """Whether a number is that at the end of its bucket."""
        return self.stacked or self.levels

    @property
    def unit(self) -> str:
        return self.of if self.at_end else f"{self.of} per {long(self.step_s)}"

    @property
    def empty(self) -> bool:
        return not any(n for curve in self.curves for n in curve.points)

    @property
    def tops(self) -> list[list[float]]:
        """The upper edge of each curve; of stacked ones above those before."""
        edges: list[list[float]] = []
        below: list[float] = [0] * len(self.times)
        for curve in self.curves:
            edge = [a + b for a, b in zip(below, curve.points, strict=True)] if self.stacked else list(curve.points)
            edges.append(edge)
            below = edge if self.stacked else below
        return edges

    @property
    def together(self) -> int:
        """How many buckets a row of the table has: 5 or 10 minutes, hours, and whole parts or numbers of days."""
        n = len(self.times)
        hours = (HOUR_S * h for h in (1, 3, 6, 12, 24, 48, 96))
        wanted = (
            s // self.step_s for s in (self.step_s, 300, 600, *hours) if s % self.step_s == 0 and n * self.step_s / s <= ROWS
        )
        return next(wanted, -(-n // ROWS))

    @property
    def rows(self) -> list[Row]:
        """The table, newest first: what happened added up, or the levels at the end."""
        size, rows = self.together, []
        for i in reversed(range(0, len(self.times), size)):
            part = slice(i, i + size)
            numbers = [curve.points[part][-1] if self.at_end else sum(curve.points[part]) for curve in self.curves]
            rows.append(Row(self.times[i], numbers))
        return rows

    @property
    def row_length(self) -> str:
        """How long a row of the table is, in words."""
        told = long(self.together * self.step_s)
        return told if told[0].isdigit() else f"1 {told}"

    @property
    def words(self) -> str:
        """What the picture shows, for whoever does not see it."""
        if self.stacked:
            told = ", ".join(f"{curve.name} {curve.points[-1]:,}" for curve in self.curves)
            return f"{capfirst(self.of)} now: {told}; most together {max(self.tops[-1], default=0):,}."
        if self.levels:
            told = ", ".join(f"{curve.name} {curve.points[-1]:,}" for curve in self.curves if curve.points)
            return f"{capfirst(self.of)} {'in the last step' if self.of_steps else 'at the end'}: {told}."
        told = ", ".join(f"{curve.name} {sum(curve.points):,}" for curve in self.curves)
        most = max((n for edge in self.tops for n in edge), default=0)
        return f"{capfirst(self.of)} in all: {told}. Most in one step: {most:,}."


def draw(plot: Plot, name: str) -> SafeString:
    """The picture; `name` is an id that nothing else on the page has."""
    most = _ceiling(max((n for edge in plot.tops for n in edge), default=0))
    parts = [_grid(most, plot.width), _hours(plot.times, plot.width), *_shapes(plot, most)]
    return format_html(
        '<svg class="plot" viewBox="0 0 {width} {height}" role="img" tabindex="0" aria-labelledby="{name}-title {name}-words">'
        '<title id="{name}-title">{title}, {unit}</title><desc id="{name}-words">{words}</desc>{parts}</svg>',
        width=plot.width, height=HEIGHT, name=name, title=plot.title, unit=plot.unit, words=plot.words,
        parts=format_html_join("", "{}", ((part,) for part in parts)),
    )  # fmt: skip


def _ceiling(most: float) -> int:
    """The end of the axis: a round number, not below `most`."""
    size = 1
    while True:
        for n in (4, 5, 8, 10, 20):
            if n * size >= most:
                return n * size
        size *= 10


def _y(number: float, most: int) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - number / most)


def _grid(most: int, width: int) -> SafeString:
    """Lines across with their numbers; those of a wide plot stand at its right end again, which a narrow screen shows first."""
    steps = next(n for n in (TICKS, 5, 3, 2, 1) if most % n == 0 and len(str(most // n).rstrip("0")) == 1)
    lines = [(most * i // steps, f"{_y(most * i // steps, most):.1f}") for i in range(steps + 1)]
    grid = format_html_join(
        "",
        '<path class="axis" d="M{} {}H{}"/><text class="tick" x="{}" y="{}" dy="0.32em" text-anchor="end">{}</text>',
        ((LEFT, y, width - RIGHT, LEFT - 6, y, _short(number)) for number, y in lines),
    )
    again = format_html_join(
        "",
        '<text class="tick again" x="{}" y="{}" dy="1em" text-anchor="end">{}</text>',
        ((width - RIGHT, y, _short(number)) for number, y in lines[1:] if width > WIDTH),
    )
    return grid + again


def _short(number: int) -> str:
    for size, letter, least in ((1_000_000, "M", 1_000_000), (1_000, "k", 10_000)):
        if number >= least:
            return f"{number / size:g} {letter}"
    return f"{number:,}"


def _x(i: float, n: int, width: int) -> float:
    return LEFT + (width - LEFT - RIGHT) * i / max(n - 1, 1)


def _hours(times: Sequence[datetime], width: int) -> SafeString:
    """Times along the lower edge: whole hours, or days; each as a whole within the picture."""
    span_s = (times[-1] - times[0]).total_seconds() if times else 0
    every_s = next((s for s in MARKS_S if span_s / s <= MOST_MARKS), 60 * DAY_S)
    form = "%H:%M:%S" if every_s < 60 else "%H:%M" if every_s < DAY_S else "%m-%d"
    marked = [(i, at) for i, at in enumerate(times) if at.timestamp() % every_s == 0]
    marks = [(_x(i, len(times), width), at.astimezone(UTC).strftime(form)) for i, at in marked]
    return format_html_join(
        "",
        '<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>',
        ((f"{min(max(x, LEFT), width - LETTER * len(told) / 2):.1f}", HEIGHT - 6, told) for x, told in marks),
    )


def _shapes(plot: Plot, most: int) -> list[SafeString]:
    n, shapes = len(plot.times), []
    below: list[float] = [0] * n
    for curve, edge in zip(plot.curves, plot.tops, strict=True):
        line = _path(edge, most, plot.width, range(n))
        if plot.stacked:
            back = _path(below, most, plot.width, range(n)[::-1])
            shapes.append(format_html('<path class="area {}" d="M{}L{}Z"/>', curve.colour, line, back))
            below = edge
        else:
            shapes.append(format_html('<path class="line {}" d="M{}"/>', curve.colour, line))
    return shapes


def _path(edge: Sequence[float], most: int, width: int, order: Sequence[int]) -> str:
    """The points in this order; those on a straight line between others are left out."""
    kept: list[str] = []
    at, last = _places(len(edge), width), len(order) - 1
    for place, i in enumerate(order):
        if place in (0, last) or not edge[order[place - 1]] == edge[i] == edge[order[place + 1]]:
            kept.append(f"{at[i]} {_y(edge[i], most):.1f}")
    return "L".join(kept)


@lru_cache(64)
def _places(n: int, width: int) -> list[str]:
    """Where so many points stand from left to right."""
    return [f"{_x(i, n, width):.1f}" for i in range(n)]


def sparkline(bars: Sequence[int], jobs: int) -> SafeString:
    """A row of small bars, each a part of the largest, of 100: how often something happened from then to now."""
    shapes = "".join(f"M{3 * i} 20v-{n / 5:g}h2v{n / 5:g}z" for i, n in enumerate(bars) if n)
    return format_html(
        '<svg class="spark" viewBox="0 0 {} 20" width="{}" height="20" role="img" aria-label="{} jobs, {}"><path d="{}"/></svg>',
        3 * len(bars), 3 * len(bars), jobs, "over the time from left to right", shapes,
    )  # fmt: skip
