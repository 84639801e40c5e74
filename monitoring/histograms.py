"""How numbers of many jobs are spread, drawn as bars by the server, and the same as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 220, 52, 14, 10, 24
MOST_BARS, MARKS = 24, 8
"""Bars, and numbers along the lower edge, at most."""


@dataclass(frozen=True, slots=True)
class Bar:
    """How many jobs have a number from `low` on and below `high`."""

    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Histogram:
    """Jobs by a number. `limit`: the largest that they may have, None: any, or not known."""

    title: str
    unit: str
    values: Sequence[float]
    limit: float | None = None

    @property
    def step(self) -> float:
        """The width of a bar: a round number."""
        least = max(max(self.values, default=0.0), 1e-3) / MOST_BARS
        size = 10.0 ** floor(log10(least))
        return next(n * size for n in (1, 2, 5, 10) if n * size >= least)

    @property
    def bars(self) -> list[Bar]:
        """From 0 to the largest number, none left out."""
        step = self.step
        counts = [0] * (floor(max(self.values, default=0.0) / step) + 1)
        for value in self.values:
            counts[max(int(value / step), 0)] += 1
        return [Bar(round(i * step, 6), round((i + 1) * step, 6), n) for i, n in enumerate(counts)]

    @property
    def reaches_limit(self) -> bool:
        """Whether the limit is within the picture."""
        return self.limit is not None and 0 < self.limit <= self.bars[-1].high

    @property
    def middle(self) -> float | None:
        """Half of the jobs have less."""
        return sorted(self.values)[len(self.values) // 2] if self.values else None

    @property
    def words(self) -> str:
        """What the picture shows, for whoever does not see it."""
        if self.middle is None:
            return "No job is known."
        most = max(self.values)
        limit = f", {_told(self.limit)} {self.unit} allowed" if self.limit else ""
        jobs = f"{len(self.values):,} job{'' if len(self.values) == 1 else 's'}"
        return f"{jobs}: half below {_told(self.middle)} {self.unit}, the most {_told(most)} {self.unit}{limit}."


def _told(number: float) -> str:
    """Three digits are enough of a small number; a large one is written out."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def draw_histogram(shown: Histogram, name: str) -> SafeString:
    """The picture; `name` is an id that nothing else on the page has."""
    bars = shown.bars
    end, most = bars[-1].high, max(*(bar.n for bar in bars), 1)
    parts = [_grid(most), _marks(bars), _bars(bars, most)]
    if shown.limit and shown.reaches_limit:
        parts.append(
            format_html('<path class="line target" d="M{} {}V{}"/>', f"{_x(shown.limit, end):.1f}", TOP, HEIGHT - BOTTOM)
        )
    return format_html(
        '<svg class="plot" viewBox="0 0 {width} {height}" role="img" tabindex="0" aria-labelledby="{name}-title {name}-words">'
        '<title id="{name}-title">{title}, {unit}</title><desc id="{name}-words">{words}</desc>{parts}</svg>',
        width=WIDTH, height=HEIGHT, name=name, title=shown.title, unit=shown.unit, words=shown.words,
        parts=format_html_join("", "{}", ((part,) for part in parts)),
    )  # fmt: skip


def _x(value: float, end: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * value / end


def _y(n: float, most: int) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - n / most)


def _grid(most: int) -> SafeString:
    """Lines across with their numbers: none, half and the most."""
    numbers = sorted({0, most // 2, most}) if most > 1 else [0, most]
    return format_html_join(
        "",
        '<path class="axis" d="M{} {}H{}"/><text class="tick" x="{}" y="{}" dy="0.32em" text-anchor="end">{}</text>',
        ((LEFT, y, WIDTH - RIGHT, LEFT - 6, y, f"{n:,}") for n in numbers for y in (f"{_y(n, most):.1f}",)),
    )


def _marks(bars: Sequence[Bar]) -> SafeString:
    """Numbers along the lower edge, at the left of bars."""
    every, end = ceil(len(bars) / MARKS), bars[-1].high
    return format_html_join(
        "",
        '<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>',
        ((f"{_x(bar.low, end):.1f}", HEIGHT - 6, f"{bar.low:g}") for bar in bars[::every]),
    )


def _bars(bars: Sequence[Bar], most: int) -> SafeString:
    """Each bar that has a job is seen."""
    end = bars[-1].high
    width = max(_x(bars[0].high, end) - LEFT - 1, 1)
    heights = ((bar, max(_y(0, most) - _y(bar.n, most), 1.5)) for bar in bars if bar.n)
    return format_html_join(
        "",
        '<rect class="column" x="{}" y="{}" width="{}" height="{}"/>',
        ([f"{number:.1f}" for number in (_x(bar.low, end), _y(0, most) - height, width, height)] for bar, height in heights),
    )
