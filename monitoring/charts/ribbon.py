"""Ribbons: what was said of something during the last hours, as a strip from then to now."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from monitoring.charts.bars import HEIGHT, WIDTH
from monitoring.queries.throttle import RIBBON_H, Spell

LEAST = 1.0
"""Width that a spell has at least, of 100: a single verdict is still seen."""
COLOURS = {"PASS": "done", "SKIP": "held"}


def throttle_ribbon(spells: Iterable[Spell], now: datetime) -> SafeString:
    """When a unit got jobs and when not, from 24 h ago (left) to now; what was not judged stays empty."""
    begin = now - timedelta(hours=RIBBON_H)
    strips = [(spell.decision, *_strip(spell, begin, now)) for spell in spells if spell.last_at >= begin]
    rects = format_html_join(
        "",
        '<rect class="{}" x="{}" y="0" width="{}" height="{}"/>',
        ((COLOURS[decision], f"{x:.2f}", f"{width:.2f}", HEIGHT) for decision, x, width in strips),
    )
    said = _said(strips)
    return format_html(
        '<svg class="bar" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}"><title>{}</title>{}</svg>',
        f"{WIDTH:g}", HEIGHT, said, said, rects,
    )  # fmt: skip


def _strip(spell: Spell, begin: datetime, now: datetime) -> tuple[float, float]:
    """Where a spell begins, and how wide it is."""
    whole = (now - begin).total_seconds()
    x = max((spell.first_at - begin).total_seconds(), 0.0) / whole * WIDTH
    width = max((min(spell.last_at, now) - begin).total_seconds() / whole * WIDTH - x, LEAST)
    return min(x, WIDTH - LEAST), min(width, WIDTH - min(x, WIDTH - LEAST))


def _said(strips: Iterable[tuple[str, float, float]]) -> str:
    hours = dict.fromkeys(COLOURS, 0.0)
    for decision, _, width in strips:
        hours[decision] += width / WIDTH * RIBBON_H
    return f"last {RIBBON_H} h: PASS {hours['PASS']:.1f} h, SKIP {hours['SKIP']:.1f} h"
