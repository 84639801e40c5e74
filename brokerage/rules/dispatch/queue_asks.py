"""What is kept of an ask at a queue: what the pilot offered, and what came of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, get_args
from uuid import UUID

from brokerage.rules.dispatch.requirement import AMOUNTS, Requirement, Resource
from brokerage.rules.dispatch.resource import PROCESSORS, restored, stored
from brokerage.rules.dispatch.why_nothing import GOT_JOBS, Nothing, Reason

OUTCOMES: tuple[str, ...] = (GOT_JOBS, *get_args(Reason))
"""An ask got jobs, or nothing for one of the reasons."""


class EndedAsk(NamedTuple):
    """An ask with its outcome: `jobs` of a task queue of the VO `vo` (0, empty: not known), or why there was `nothing`.

    `at`: seconds since 1970.
    """

    at: float
    pilot: UUID
    resource: Resource
    jobs: Sequence[int] = ()
    nothing: Nothing | None = None
    vo: str = ""
    task_queue: int = 0
    unknown: Sequence[str] = ()
    took_ms: float = 0.0

    @property
    def outcome(self) -> str:
        """One of OUTCOMES."""
        return GOT_JOBS if self.nothing is None else self.nothing.reason


def ask_visible(vo: str, got: bool, vos: Collection[str] | None) -> bool:
    """Whether somebody who may look into jobs of these VOs (None: of all) is told what became of an ask about jobs of `vo`."""
    return vos is None or vo in vos or not (vo or got)


def told_has(attribute: str, has: str, whose: bool) -> str:
    """What a pilot had of an attribute as a reader is told: the owners of a private one only where `whose` he may know."""
    return "other owners" if attribute == "owner" and not whose else has


def offer_of(resource: Resource) -> dict[str, object]:
    """What a resource says where it says more than nothing, but for its queue, for a column of JSON."""
    amounts = {name: value for name in (*AMOUNTS, "vo") if (value := getattr(resource, name))}
    return {**amounts, **stored(resource)}


def offer_text(offer: Mapping[str, Any], whose: bool = True) -> str:
    """The same in words, short; without `whose` it does not tell owners and groups."""
    sizes = [f"{offer[name]:,} {unit}" for name, unit in _UNITS if offer.get(name)]
    cores = offer.get("cores") or 1
    others = {
        name: _values(value)
        for name, value in sorted(offer.items())
        if name not in (*AMOUNTS, *_PLAIN, *(() if whose else _WHOSE))
    }
    return ", ".join(
        [f"{cores} core{'' if cores == 1 else 's'}", *sizes, *(f"{name} {some}" for name, some in others.items() if some)]
    )


def requirement_text(need: Requirement) -> str:
    """What a job requires of a pilot and of places, in words."""
    sizes = [f"{n:,} {unit}" for name, unit in _UNITS if (n := getattr(need, name))]
    others = [(name, getattr(need, name)) for name in Requirement._fields if isinstance(getattr(need, name), frozenset)]
    sets = [f"{name.replace('_', ' ')} {_values(sorted(wanted))}" for name, wanted in others if wanted and name != "queues"]
    return ", ".join([f"{need.cores} core{'' if need.cores == 1 else 's'}", *sizes, *sets])


def _values(value: object) -> str:
    if isinstance(value, list):
        told = [str(one) for one in value if not str(one).endswith(PROCESSORS)]  # the cores say it
        return f"{', '.join(told[:5])}{f' and {len(told) - 5} more' if len(told) > 5 else ''}"
    return "any" if value is None else str(value)


_UNITS = (("memory_mb", "MB"), ("disk_mb", "MB disk"), ("walltime_s", "s"))
_PLAIN = frozenset({"vo", "sites"})
"""What all pilots of a queue have alike."""
_WHOSE = ("owners", "owner_groups", "sharing_groups")


def resource_of(queue: str, offer: Mapping[str, Any]) -> Resource:
    """The resource at a queue that offered this."""
    plain = {name: offer[name] for name in (*AMOUNTS, "vo") if name in offer}
    return restored(Resource(queue=queue)._replace(**plain), offer)
