"""The placeholders of job parameters and file names: their syntax and their names.

Here: cutting a text into literals and placeholders. Not here: filling them (`job_parameters`) or whether a task may use them
(`refine`). Source: facts on task parameters 2.2 and on splitting 8.4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

NUMBERS = ("SN", "RNDMSEED", "MAXEVENTS", "SKIPEVENTS", "FIRSTEVENT", "ATTEMPTNR")
"""Placeholders that stand for one number of the job."""

MIDDLE_NAME = "MIDDLENAME"
"""Fields of the name of the input (addNthFieldToLFN)."""

TASK_ID = "JEDITASKID"
"""Written `$JEDITASKID`, without braces."""

ORIGIN = "ORIGINPANDAID"
"""Written `$ORIGINPANDAID`: the job with which the tries of a job began. It is in the names of jobs, which nobody gives."""

LATER: Mapping[str, str] = MappingProxyType(
    {
        "LIB": "J26",
        "OUT": "J26",
        "SEGMENT_ID": "J27",
        "SEGMENT_NAME": "J27",
        "XML_OUTMAP": "J27",
        "XML_EXESTR": "J27",
        "TRF": "U5",
        "TRF_ARGS": "U5",
    }
)
"""Known placeholders that nothing fills yet, with the row that builds them."""


class MalformedText(ValueError):
    """A text whose placeholders cannot be read; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """`${A,B[0:2]/L}`: streams A and B joined, the first two files of them, as a comma list; `text` is how it was written.

    `pick` is the slice as (start, stop), `form` the letter behind `/`, `argument` what stands in brackets behind it, `width` the
    digits that `:08d` asks for.
    """

    text: str
    names: tuple[str, ...]
    pick: tuple[int | None, int | None] | None = None
    form: str = ""
    width: int = 0
    argument: str = ""


Piece = str | Placeholder

_MARK = re.compile(r"\$\{([^{}]*)\}|\$(JEDITASKID|ORIGINPANDAID)(?![A-Za-z0-9_])")
_INSIDE = re.compile(
    r"(?P<names>[A-Za-z_]\w*(?:,[A-Za-z_]\w*)*)"
    r"(?:\[(?P<start>-?\d{0,6}):(?P<stop>-?\d{0,6})\])?"
    r"(?:/(?P<form>[A-Z])(?:\[(?P<argument>[^\]]*)\])?|:0(?P<width>\d{1,2})d|:(?P<partner>[A-Za-z_]\w*))?"
)


def pieces(text: str) -> tuple[Piece, ...]:
    """Literals and placeholders of `text`, in order; MalformedText where a `${` has no end or cannot be read."""
    parts: list[Piece] = []
    end = 0
    for mark in _MARK.finditer(text):
        parts.append(_literal(text[end : mark.start()]))
        parts.append(Placeholder(mark[0], (mark[2],)) if mark[2] else _placeholder(mark[0], mark[1]))
        end = mark.end()
    parts.append(_literal(text[end:]))
    return tuple(part for part in parts if part)


def placeholders(text: str) -> tuple[Placeholder, ...]:
    return tuple(part for part in pieces(text) if isinstance(part, Placeholder))


def row_of(name: str) -> str:
    """The row that builds the placeholder `name`; empty when it works or is unknown."""
    return LATER.get(name, "")


def _literal(text: str) -> str:
    if "${" in text:
        start = text.index("${")
        raise MalformedText(f"{text[start : start + 30]!r} does not end in '}}'")
    return text


def _placeholder(whole: str, inside: str) -> Placeholder:
    match = _INSIDE.fullmatch(inside)
    if match is None:
        raise MalformedText(f"{whole[:60]!r} is not a placeholder")
    names = tuple(match["names"].split(","))
    pick = None
    if match["start"] is not None:
        if "-" in (match["start"], match["stop"]):
            raise MalformedText(f"{whole[:60]!r}: a slice is written [0:2], [1:] or [:-1]")
        pick = (int(match["start"]) if match["start"] else None, int(match["stop"]) if match["stop"] else None)
    form = "trn" if match["partner"] else (match["form"] or "")
    if bool(match["argument"]) != (form == "M"):
        raise MalformedText(f"{whole[:60]!r}: arithmetic is written /M[#+1], and no other form has brackets")
    return Placeholder(whole, names, pick, form, int(match["width"] or 0), match["argument"] or "")
