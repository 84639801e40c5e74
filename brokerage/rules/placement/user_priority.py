"""The priority of a user's jobs: the more jobs she has, the lower that of the next one, so that others come between. Pure.

Source: facts on the brokerage 10, on users 7 (row J26). Practice counts down from 1000; here from the priority of the task, so
that a user may say which of her tasks go first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from brokerage.rules.facts.job_kind import JobKind, priority_of

PER_POINT = 5
BASE = 1000
MOST_PRIORITY = 1_000_000
KEPT_FROM = 1500
"""Tasks from this priority on keep it for their jobs."""


class OwnerStanding(NamedTuple):
    """A user or group whose jobs are made: how many she has, so many for a point of priority (0: they do not count), and the
    priority that an operator gave all her jobs.
    """

    jobs: int = 0
    per_point: float = PER_POINT
    boosted: int | None = None


def user_job_priority(n_jobs: int, base: int = BASE, offset: int = 0, per_point: float = PER_POINT) -> int:
    """The priority of the next job of a user who has so many."""
    return int(base + offset - (n_jobs / per_point if per_point else 0))


def job_priorities(kind: JobKind, task_priority: int, n: int, owner: OwnerStanding | None = None) -> Sequence[int]:
    """Those of the next n jobs of a task; `owner` where they are of a user or group."""
    if owner is None or (owner.boosted is None and (kind is not JobKind.NORMAL or task_priority >= KEPT_FROM)):
        return [priority_of(kind, task_priority)] * n
    if owner.boosted is not None:
        return [owner.boosted + (kind is JobKind.SCOUT)] * n
    return [user_job_priority(owner.jobs + i, task_priority, per_point=owner.per_point) for i in range(n)]


def boosted_priority(boosts: Iterable[Mapping[str, Any]], user: str, group: str, today: date) -> int | None:
    """The priority that operators gave jobs of this user, or of the group; the highest of several, None where there is none."""
    names = {("user", user), ("group", group)} if group else {("user", user)}
    found = [
        int(boost["prio"])
        for boost in boosts
        if (boost["type"], boost["name"]) in names and (boost.get("expire") is None or f"{today:%Y%m%d}" <= str(boost["expire"]))
    ]
    return max(found, default=None)


def bad_boosts(value: Any) -> str | None:
    """What is wrong with a list of boosts as somebody writes it; None where nothing is."""
    expected = 'a list of objects with "name", "type" (user or group), "prio" (a whole number) and "expire" (YYYYMMDD or null)'
    if not isinstance(value, list | tuple):
        return f"{expected} is expected"
    for boost in value:
        good = (
            isinstance(boost, Mapping)
            and set(boost) <= {"name", "type", "prio", "expire"}
            and isinstance(boost.get("name"), str)
            and boost.get("type") in ("user", "group")
            and isinstance(boost.get("prio"), int)
            and not isinstance(boost["prio"], bool)
            and -MOST_PRIORITY <= boost["prio"] <= MOST_PRIORITY
            and _is_day(boost.get("expire"))
        )
        if not good:
            return f"{expected} is expected, not {boost!r}"
    return None


def _is_day(value: object) -> bool:
    if value is None:
        return True
    text = str(value)
    try:
        date(int(text[:4]), int(text[4:6]), int(text[6:]))
    except ValueError:
        return False
    return len(text) == 8
