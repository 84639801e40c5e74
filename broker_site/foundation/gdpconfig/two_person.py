"""Keys that one person alone does not change where TWO_PERSON is on: one proposes, another approves (decision L2).

Pure: no Django. Not here: keeping proposals (`proposals`), and refusing what is applied without a second person (`store`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from broker_site.foundation.gdpconfig.changesets import CONFIG, Place, Step
from broker_site.foundation.kernel.verdict import Problem

KEYS = ("*.POLICY_*", "*.SHARE_MODEL", "*.FEED_MAX_LOSS", "*.LOST_CONFIRM", "retention.*")
"""Component and name: what decides how everything is brokered and shared, and what is given up or thrown away."""
RULE = "two_person"


def takes_two(place: Place) -> bool:
    """Whether a key is one of them."""
    return place.kind == CONFIG and any(fnmatchcase(f"{place.component}.{place.name}", pattern) for pattern in KEYS)


def alone_problems(steps: Sequence[Step]) -> Iterator[Problem]:
    """The lines that somebody must not apply alone."""
    for step in steps:
        if step.differs and takes_two(step.place):
            message = f"{step.place} takes two people: propose the change, and somebody else approves it"
            yield Problem(f"lines[{step.number}]", RULE, message)
