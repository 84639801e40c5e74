"""What a child broker may be called, and how long it may drain. Pure."""

from __future__ import annotations

import math
import re

from broker_site.foundation.kernel.verdict import Problem

LONGEST_NAME, LONGEST_TEAM, LONGEST_VO = 64, 64, 32
LONGEST_GRACE_S, USUAL_GRACE_S = 366 * 86_400.0, 86_400.0
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)
_WORDS = "letters, digits, dot, hyphen and underscore only, a letter or digit first"


def child_problems(name: str, team: str, vo: str) -> list[Problem]:
    """What is wrong with a new child: its name is needed, team and VO may be empty."""
    given = (("name", name, LONGEST_NAME), ("team", team, LONGEST_TEAM), ("vo", vo, LONGEST_VO))
    problems = [Problem("name", "required", "a child broker needs a name")] if not name else []
    for field, text, most in given:
        if len(text) > most:
            problems.append(Problem(field, "length", f"at most {most} characters, found {len(text)}"))
        elif text and not _PLAIN.fullmatch(text):
            problems.append(Problem(field, "characters", _WORDS))
    return problems


def grace_problems(grace_s: float) -> list[Problem]:
    """What is wrong with the seconds for which a child that drains may keep what it has."""
    if math.isfinite(grace_s) and 0 <= grace_s <= LONGEST_GRACE_S:
        return []
    return [Problem("grace_s", "range", f"from 0 to {LONGEST_GRACE_S:.0f} seconds")]
