"""Pictures that the server draws as SVG: bars of files and shares, ribbons of verdicts. No script, no inline style."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from broker_site.foundation.kernel import clock
from monitoring.queries.changes import Move
from monitoring.queries.tasks import Files
from monitoring.queries.throttle import RIBBON_H, Spell
from monitoring.wording import UNKNOWN, WORDS

WIDTH, HEIGHT = 100.0, 8
LEAST_PART, LEAST_SPELL = 1.5, 1.0
"""Width that a part or a spell has at least, of 100: one failed file in a million is still seen."""
IN_WORDS = {"running": "in jobs"}
"""Part of a bar by its colour -> what it is called, where that differs: a job that has files may wait or run."""
TONES = {"run": "running", "wait": "held", "good": "done", "part": "done", "bad": "failed"}
"""Tone of a state -> colour of its time in a ribbon."""
KEPT_DRAWINGS = 4_096
"""Most of those of a list are as they were when it was last looked at."""
COLOURS = {"PASS": "done", "SKIP": "held"}


def progress_bar(files: Files) -> SafeString:
    """Done, failed, lost, in jobs, left, in this order."""
    lost = [("lost", files.lost)] if files.lost else []
    parts = [("done", files.finished), ("failed", files.failed), *lost, ("running", files.in_jobs), ("left", files.left)]
    words = ", ".join(f"{n:,} {IN_WORDS.get(name, name)}" for name, n in parts)
    return _bar(parts, words if files.total else "no files yet")


def files_told(files: Files, jobs_waiting: int | None = None, jobs_running: int | None = None) -> SafeString:
    """The same in words, with what the jobs do that have files; a list has hundreds of them, so no template does it."""
    parts = [f"{files.finished:,} done"]
    parts += [f"{n:,} {name}" for name, n in (("failed", files.failed), ("lost", files.lost)) if n]
    if files.in_jobs:
        jobs = ((jobs_waiting or 0, "wait"), (jobs_running or 0, "run"))
        what = ", ".join(f"{n:,} {verb}{'s' if n == 1 else ''}" for n, verb in jobs if n)
        parts.append(f"{files.in_jobs:,} in jobs" + f" ({what})" * bool(jobs_waiting or jobs_running))
    if files.left:
        parts.append(f"{files.left:,} left")
    return format_html('<span class="small muted">{}</span>', " · ".join(parts) if files.total else "no files yet")


def share_bar(part: float, whole: float, name: str = "running") -> SafeString:
    """A part of a whole; the numbers stand beside it, so it is hidden from screen readers."""
    return _bar([(name, part), ("left", max(whole - part, 0.0))], "")


def throttle_ribbon(spells: Iterable[Spell]) -> SafeString:
    """When a unit got jobs and when not, from 24 h ago (left) to now; times without a verdict stay empty."""
    end = clock.now()
    begin = end - timedelta(hours=RIBBON_H)
    strips = [(spell.decision, *_strip(spell, begin, end)) for spell in spells if spell.last_at >= begin]
    hours = dict.fromkeys(COLOURS, 0.0)
    for decision, _, width in strips:
        hours[decision] += width / WIDTH * RIBBON_H
    rects = [(COLOURS[decision], x, width) for decision, x, width in strips]
    return _drawing(tuple(rects), f"last {RIBBON_H} h: PASS {hours['PASS']:.1f} h, SKIP {hours['SKIP']:.1f} h")


def state_ribbon(moves: Sequence[Move], final: bool) -> SafeString | str:
    """The states of a task from its beginning (left) to now, or to its end; `moves` newest first."""
    if not moves:
        return ""
    begin, end = moves[-1].at, moves[0].at if final else clock.now()
    whole = max((end - begin).total_seconds(), 1e-6)
    rects: list[tuple[str, float, float]] = []
    spent: dict[str, float] = {}
    for move in reversed(moves):
        lasted_s = move.lasted_s if move.lasted_s is not None else (end - move.at).total_seconds()
        spent[move.new] = spent.get(move.new, 0.0) + lasted_s
        x = (move.at - begin).total_seconds() / whole * WIDTH
        rects.append((TONES.get(WORDS["task"].get(move.new, UNKNOWN).tone, "left"), x, lasted_s / whole * WIDTH))
    told = (f"{state} {seconds:,.0f} s" for state, seconds in sorted(spent.items(), key=lambda item: -item[1]) if seconds >= 1)
    return _drawing(tuple(rects), f"time in each state: {', '.join(told) or 'less than a second'}")


def _strip(spell: Spell, begin: datetime, end: datetime) -> tuple[float, float]:
    """Where a spell begins, and how wide it is."""
    whole = (end - begin).total_seconds()
    x = max((spell.first_at - begin).total_seconds(), 0.0) / whole * WIDTH
    width = max((min(spell.last_at, end) - begin).total_seconds() / whole * WIDTH - x, LEAST_SPELL)
    return min(x, WIDTH - LEAST_SPELL), min(width, WIDTH - min(x, WIDTH - LEAST_SPELL))


def _bar(parts: Iterable[tuple[str, float]], label: str) -> SafeString:
    """Parts side by side that fill the width, each at least LEAST_PART where its number is not 0."""
    filled = [(name, n) for name, n in parts if n]
    total = sum(n for _, n in filled)
    widths = [max(n / total * WIDTH, LEAST_PART) for _, n in filled]
    rects, x = [], 0.0
    for (name, _), width in zip(filled, widths, strict=True):
        rects.append((name, x, width * WIDTH / sum(widths)))
        x += rects[-1][2]
    return _drawing(tuple(rects), label)


@lru_cache(KEPT_DRAWINGS)
def _drawing(rects: tuple[tuple[str, float, float], ...], label: str) -> SafeString:
    """Rectangles (class, x, width) in a picture; without a label it is hidden from screen readers."""
    box = f"0 0 {WIDTH:g} {HEIGHT}"
    shapes = format_html_join(
        "",
        '<rect class="{}" x="{}" y="0" width="{}" height="{}"/>',
        ((colour, f"{x:.2f}", f"{width:.2f}", HEIGHT) for colour, x, width in rects),
    )
    if not label:
        return format_html('<svg class="bar" viewBox="{}" preserveAspectRatio="none" aria-hidden="true">{}</svg>', box, shapes)
    return format_html(
        '<svg class="bar" viewBox="{}" preserveAspectRatio="none" role="img" aria-label="{}"><title>{}</title>{}</svg>',
        box, label, label, shapes,
    )  # fmt: skip
