"""How long the command line of a payload may be: what Linux starts, and what is worth storing for each job. Pure."""

from __future__ import annotations

import re

LONGEST_ARGUMENT = 131_071
"""Bytes of one argument: 128 KiB with the NUL behind it (MAX_ARG_STRLEN)."""
LONGEST = 1_000_000
"""Bytes of all arguments: half of the usual ARG_MAX, the rest is for the environment and for what starts the payload."""
_ARGUMENT = re.compile(r"""(?:[^\s'"\\]++|'[^']*+'|"(?:[^"\\]++|\\.)*+"|\\.|['"\\])++""", re.DOTALL)
"""An argument as a shell splits it, with its quotes."""


def too_long(text: str) -> str:
    """What is too long about a command line, in words; empty where nothing is."""
    if 4 * len(text) <= LONGEST_ARGUMENT:
        return ""
    whole = len(text.encode())
    if whole > LONGEST:
        return f"the command line has {whole} bytes, at most {LONGEST}"
    longest = max((len(found[0].encode()) for found in _ARGUMENT.finditer(text)), default=0)
    if longest > LONGEST_ARGUMENT:
        return f"an argument of the command line has {longest} bytes, at most {LONGEST_ARGUMENT}"
    return ""
