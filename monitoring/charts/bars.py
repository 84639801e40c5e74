"""Bars: what became of the files of a task, and parts of a whole."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from monitoring.queries.tasks import Files

WIDTH, HEIGHT = 100.0, 8
LEAST = 1.5
"""Width that a part which is not empty has at least, of 100: one failed file in a million is still seen."""


def progress_bar(files: Files) -> SafeString:
    """Done, failed, running, left, in this order."""
    parts = (("done", files.finished), ("failed", files.failed), ("running", files.running), ("left", files.left))
    said = ", ".join(f"{n:,} {name}" for name, n in parts) if files.total else "no files yet"
    return _bar([(name, float(n)) for name, n in parts], said)


def share_bar(part: float, whole: float, name: str = "running") -> SafeString:
    """A part of a whole; the numbers stand beside it, so it is hidden from screen readers."""
    return _bar([(name, part), ("left", max(whole - part, 0.0))], "")


def _bar(parts: list[tuple[str, float]], said: str) -> SafeString:
    box, rects = f"0 0 {WIDTH:g} {HEIGHT}", _rects(parts)
    if not said:
        return format_html('<svg class="bar" viewBox="{}" preserveAspectRatio="none" aria-hidden="true">{}</svg>', box, rects)
    return format_html(
        '<svg class="bar" viewBox="{}" preserveAspectRatio="none" role="img" aria-label="{}"><title>{}</title>{}</svg>',
        box, said, said, rects,
    )  # fmt: skip


def _rects(parts: list[tuple[str, float]]) -> SafeString:
    drawn, x = [], 0.0
    for (name, _), width in zip(parts, _widths([n for _, n in parts]), strict=True):
        if width:
            drawn.append((name, f"{x:.2f}", f"{width:.2f}", HEIGHT))
            x += width
    return format_html_join("", '<rect class="{}" x="{}" y="0" width="{}" height="{}"/>', drawn)


def _widths(numbers: Iterable[float]) -> list[float]:
    """Widths that fill the bar, each at least LEAST where its number is not 0."""
    given = list(numbers)
    total = sum(given)
    if not total:
        return [0.0 for _ in given]
    wanted = [max(n / total * WIDTH, LEAST) if n else 0.0 for n in given]
    return [w * WIDTH / sum(wanted) for w in wanted]
