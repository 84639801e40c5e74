"""Colours of the style sheet: text is readable on every ground, in light and in dark (WCAG: 4.5 to 1; graphics 3 to 1)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SHEET = (Path(__file__).parents[3] / "monitoring/static/monitoring/site.css").read_text(encoding="utf-8")
COLOURS = {name: (light, dark) for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", SHEET)}
TEXTS = ("text", "muted", "accent", "good", "part", "wait", "bad", "run", "idle")
GROUNDS = ("ground", "surface", "raised")


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_is_readable_on_every_ground(scheme: int) -> None:
    weak = {
        (text, ground): round(contrast(COLOURS[text][scheme], COLOURS[ground][scheme]), 2) for text in TEXTS for ground in GROUNDS
    }
    assert {pair: ratio for pair, ratio in weak.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_the_parts_of_a_bar_stand_out_from_the_card(scheme: int) -> None:
    fills = ("fill-done", "fill-failed", "fill-running", "fill-held", "fill-started")
    weak = {fill: round(contrast(COLOURS[fill][scheme], COLOURS["surface"][scheme]), 2) for fill in fills}
    assert {fill: ratio for fill, ratio in weak.items() if ratio < 3} == {}


def test_no_rule_has_a_text_colour_of_its_own() -> None:
    """Every `color:` takes one of the named colours, so that the two tests above speak of all of them."""
    used = re.findall(r"(?<![-\w])color: ([^;]+);", SHEET)
    assert {colour for colour in used if not re.fullmatch(r"var\(--[\w-]+\)|currentColor", colour)} == set()


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_numbers_are_readable_on_every_shade_of_a_heat_map(scheme: int) -> None:
    shades = [int(part) for part in re.findall(r"--heat: (\d+)%", SHEET)]
    assert shades == sorted(set(shades))
    weak = [n for n in shades if contrast(COLOURS["text"][scheme], mixed("fill-failed", "surface", n / 100, scheme)) < 4.5]
    assert (len(shades), weak) == (5, [])


def mixed(one: str, other: str, part: float, scheme: int) -> str:
    """`color-mix(in srgb, one part, other)`."""
    pairs = [(int(COLOURS[one][scheme][i : i + 2], 16), int(COLOURS[other][scheme][i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(part * a + (1 - part) * b):02x}" for a, b in pairs)
