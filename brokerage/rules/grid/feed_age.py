"""How old a feed may be (decision B14), and how its state is told. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

State = Literal["fresh", "old", "too old"]

SUBJECTS: Mapping[str, str] = {
    "grid": "QUEUES",
    "cric-sites": "QUEUES",
    "cric-queues": "QUEUES",
    "cric-storages": "STORAGES",
    "software": "RELEASES",
}
"""Kind of a feed -> the part of its keys' names. Network metrics have windows of their own, closeness does not age."""

_STEPS = (("d", 86400.0), ("h", 3600.0), ("min", 60.0))


def judged(kind: str, age_s: float, config: Mapping[str, Any]) -> State:
    """Whether a feed of this age is used, warned of, or not decided on."""
    subject = SUBJECTS.get(kind)
    if subject is None:
        return "fresh"
    if age_s > config[f"FEED_MAX_AGE_{subject}"]:
        return "too old"
    return "old" if age_s > config[f"FEED_WARN_AGE_{subject}"] else "fresh"


def told(name: str, age_s: float, never: bool, fault: str, failing: str, n_faulty: int) -> str:
    """The state of a feed in one sentence."""
    parts = [f"feed {name}: " + ("never read" if never else f"of {age(age_s)} ago")]
    if fault:
        parts.append(f"failing since {failing}: {fault}")
    if n_faulty:
        parts.append(f"{n_faulty} faulty {'entry' if n_faulty == 1 else 'entries'}")
    return "; ".join(parts)


def age(seconds: float) -> str:
    """A length of time in its largest unit, as `3 h`."""
    for unit, length in _STEPS:
        if seconds >= 2 * length:
            return f"{int(seconds // length)} {unit}"
    return f"{int(seconds)} s"
