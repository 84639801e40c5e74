"""The use of the leaves of a share tree over time, drawn as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle

from django.utils.html import format_html, format_html_join

from tests.shares.occupancy import PARTS, Held, mean_use
from workqueues.rules.shares.tree import Node, targets

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 900, 500, 50, 170, 40, 40
STEPS = 90
"""Points in time."""
LINE_H = 15
COLOURS = ("#1f77b4", "#d95f02", "#1b9e77", "#7570b3", "#e7298a", "#66a61e", "#a6761d", "#444444", "#b8860b")


def picture(tree: Sequence[Node], jobs: Sequence[Held], seconds: float, minutes: float) -> str:
    """What part of all each leaf used over time, its target dashed; what is judged lies right of the upright line.

    `minutes`: the time that the seconds of the run stand for.
    """
    percent = targets(tree, 100.0)
    leaves = [leaf.name for node in tree for leaf in node.leaves()]
    seen = [_percents(mean_use(jobs, at - seconds / STEPS, at + seconds / STEPS)) for at in _times(seconds)]
    most = 1.15 * max(*(percent[leaf] for leaf in leaves), *(max(p.values(), default=0.0) for p in seen[STEPS // PARTS :]))
    right, low = WIDTH - RIGHT, HEIGHT - BOTTOM

    def x(at_s: float) -> float:
        return round(LEFT + at_s / seconds * (right - LEFT), 1)

    def y(part: float) -> float:
        return round(low - min(part / most, 1.0) * (low - TOP), 1)

    labels = _spread({leaf: y(percent[leaf]) for leaf in leaves})
    curves = []
    for leaf, colour in zip(leaves, cycle(COLOURS), strict=False):
        points = " ".join(f"{x(at)},{y(p.get(leaf, 0.0))}" for at, p in zip(_times(seconds), seen, strict=True))
        aim, text = y(percent[leaf]), f"{leaf} {percent[leaf]:.1f} %"
        curves.append((points, colour, LEFT, aim, right, aim, colour, right + 8, labels[leaf] + 4, colour, text))
    drawn = format_html_join(
        "\n",
        '<polyline points="{}" fill="none" stroke="{}" stroke-width="1.5"/><line x1="{}" y1="{}" x2="{}" y2="{}" stroke="{}"'
        ' stroke-dasharray="5 4"/><text x="{}" y="{}" fill="{}">{}</text>',
        curves,
    )
    grid = format_html_join(
        "\n", '<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="#ddd"/><text x="{}" y="{}" fill="#555">{}</text>',
        [*((LEFT, y(p), right, y(p), 8, y(p) + 4, f"{p} %") for p in range(0, int(most) + 1, 5)),
         *((x(seconds * i / 6), TOP, x(seconds * i / 6), low, x(seconds * i / 6) - 12, low + 18, f"{minutes * i / 6:g} min")
           for i in range(7))],
    )  # fmt: skip
    judged = format_html(
        '<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="#000"/>', *(x(seconds / PARTS), TOP, x(seconds / PARTS), low)
    )
    return format_html(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" font-family="sans-serif" font-size="12">'
        '<rect width="100%" height="100%" fill="#fff"/><text x="{}" y="22">Part of all HS06 in use, by share; dashed: target;'
        " judged right of the black line</text>\n{}\n{}\n{}</svg>\n",
        WIDTH, HEIGHT, LEFT, grid, drawn, judged,
    )  # fmt: skip


def _times(seconds: float) -> Iterator[float]:
    """The points in time, s."""
    return ((i + 0.5) * seconds / STEPS for i in range(STEPS))


def _percents(used: Mapping[str, float]) -> dict[str, float]:
    whole = sum(used.values())
    return {leaf: 100 * amount / whole for leaf, amount in used.items()} if whole else {}


def _spread(wanted: Mapping[str, float]) -> dict[str, float]:
    """Places of labels, as near to the wanted ones as they can be read."""
    places: dict[str, float] = {}
    above = float("inf")
    for leaf, place in sorted(wanted.items(), key=lambda each: -each[1]):
        places[leaf] = above = min(place, above - LINE_H)
    return places
