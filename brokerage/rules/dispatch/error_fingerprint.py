"""Errors that are the same but for numbers and names: one fingerprint for all jobs that ended with them (decision L3)."""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

ANYTHING = "*"
"""Stands for what differs from job to job."""
LONGEST = 200
"""Characters of a message that count; what comes later tells more of the job than of the error."""
READ = 500
"""Characters that are looked at, as many as a result keeps."""

_VARYING = (
    re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"`<>,;)\]]+", re.IGNORECASE),  # addresses
    re.compile(r"(?<!\w)(?:'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`)(?!\w)"),  # quoted names
    re.compile(r"(?<![\w*])(?:[A-Za-z]:)?(?:\.{0,2}[/\\][\w.+@%=~*-]+)+[/\\]?"),  # absolute paths
    re.compile(r"(?<![\w*])[\w.+@%=~-]+(?:/[\w.+@%=~-]+){2,}/?"),  # relative paths; "and/or" is none
    re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE),  # UUIDs
    re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE),
    re.compile(r"\b(?=[a-f]*[0-9])[0-9a-f]{8,}\b", re.IGNORECASE),  # check sums
    re.compile(r"[-+]?\d+(?:[.,:]\d+)*(?:e[-+]?\d+)?", re.IGNORECASE),
)
_REPEATED = re.compile(r"\*(?:[-._:,]?\*)+")
_SPACE = re.compile(r"\s+")


class EndError(NamedTuple):
    """With which error a job ended, as its result says. `reported`: the state that its pilot reported; empty: nothing."""

    reported: str
    code: str
    exit_code: int | None
    message: str

    @property
    def component(self) -> str:
        """Who says so: the pilot, or the broker, which ends a job without the pilot or does not believe its success."""
        return "pilot" if self.reported == "failed" else "broker"


class Fingerprint(NamedTuple):
    """What all jobs with the same error have in common. `exit_code`: of the payload; 0: none, or it ended well."""

    component: str
    code: str
    exit_code: int
    message: str

    @property
    def id(self) -> int:
        """The same number wherever it is computed: 63 bits of a hash."""
        text = "\x1f".join(map(str, self)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1


def same_words(message: str) -> str:
    """The message without what differs from job to job: numbers, paths, addresses, hexadecimal and quoted names."""
    text = message[:READ]
    for varying in _VARYING:
        text = varying.sub(ANYTHING, text)
    return _SPACE.sub(" ", _REPEATED.sub(ANYTHING, text)).strip()[:LONGEST].rstrip()


def fingerprint(error: EndError) -> Fingerprint:
    """What the error has in common with others."""
    return Fingerprint(error.component, error.code, error.exit_code or 0, same_words(error.message))
