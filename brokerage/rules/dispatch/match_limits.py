"""Limits of a site on jobs of one kind: how many may run there, and how long lies between two matches (facts on matching a6).

Each limit holds on its own: a job matches only where no value of any of its attributes is at its limit or has to wait. The limits
of a computing element (CE) are compared with the jobs at that CE, never with those of its site; a pilot that names several is at
each of them. Times in seconds since 1970.
Not here: the limits that a site advertises of itself (`site_limits`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from broker_site.foundation.kernel.registry import nearest

ATTRIBUTES = (
    *("owner", "owner_group", "vo", "setup", "job_types", "tags", "platforms", "stations", "pilot_types", "grid_ces"),
    *("prod_source_label", "gshare"),
)
"""Attributes of a task queue that may be limited: those of its requirement, and others."""

LONGEST_VALUE, LONGEST_CE = 128, 255
CES = "CEs"
"""Stands among the attributes of a site, and holds the limits of its computing elements by their names."""

Values = Mapping[str, frozenset[str]]
"""Attribute -> values."""


class Limited(NamedTuple):
    """What a limit is on: jobs with this value of this attribute, at the CE, or, where that is empty, at the whole site."""

    attribute: str
    value: str
    ce: str = ""

    def __str__(self) -> str:
        return f"{self.kind} at {self.ce}" if self.ce else self.kind

    @property
    def kind(self) -> str:
        """The kind of jobs, wherever they are."""
        return f"{self.attribute} {self.value}"


@dataclass(frozen=True, slots=True)
class Delay:
    """At most `burst` matches at once, then one each `interval_s` seconds."""

    interval_s: float
    burst: int = 1


@dataclass(frozen=True, slots=True)
class SiteRules:
    """The limits of one site: most jobs that hold a slot there, and delays between matches."""

    running: Mapping[Limited, int]
    delays: Mapping[Limited, Delay]
    limits: frozenset[Limited] = field(init=False, repr=False, compare=False)
    """All of them."""
    in_order: tuple[Limited, ...] = field(init=False, repr=False, compare=False)
    ces: frozenset[str] = field(init=False, repr=False, compare=False)
    """The computing elements that have limits of their own."""
    _by_value: Mapping[str, Mapping[str, tuple[Limited, ...]]] = field(init=False, repr=False, compare=False)
    """All limits by attribute and value."""
    attributes: frozenset[str] = field(init=False, repr=False, compare=False)
    """Those of which a value is limited."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "limits", frozenset(self.running.keys() | self.delays.keys()))
        object.__setattr__(self, "in_order", tuple(sorted(self.limits)))
        object.__setattr__(self, "attributes", frozenset(limited.attribute for limited in self.limits))
        object.__setattr__(self, "ces", frozenset(limited.ce for limited in self.limits if limited.ce))
        by_value: dict[str, dict[str, tuple[Limited, ...]]] = {}
        for limited in self.in_order:
            some = by_value.setdefault(limited.attribute, {})
            some[limited.value] = (*some.get(limited.value, ()), limited)
        object.__setattr__(self, "_by_value", by_value)

    def __bool__(self) -> bool:
        return bool(self.limits)

    def on(self, ces: Collection[str], values: Values) -> list[Limited]:
        """Those limits that a job with these values has to pass, matched at these CEs (none: unknown), each of them; sorted."""
        found: list[Limited] = []
        for attribute, some in values.items():
            if limited := self._by_value.get(attribute):
                for value in some:
                    found += [each for each in limited.get(value, ()) if not each.ce or each.ce in ces]
        return sorted(found) if len(found) > 1 else found

    def at(self, ces: Collection[str]) -> list[Limited]:
        """All limits that count at these CEs; sorted."""
        return [limited for limited in self.in_order if not limited.ce or limited.ce in ces]

    def counted_ces(self) -> frozenset[str]:
        """The CEs whose jobs are counted."""
        return frozenset(limited.ce for limited in self.running if limited.ce)


@dataclass(frozen=True, slots=True)
class Gauge:
    """What is known of one limit.

    `running`: jobs counted; `matched`: those matched since the count; `free_at`: when the delays of all matches so far are over;
    `counted`: jobs were counted at all.
    """

    running: int = 0
    matched: int = 0
    free_at: float = 0.0
    counted: bool = True


@dataclass(frozen=True, slots=True)
class Held:
    """What holds matches back now: values by attribute, seconds to wait where a delay holds one, and each limit in words."""

    values: Values
    waits_s: Mapping[Limited, float]
    why: tuple[tuple[Limited, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.values)


FREE = Held({}, {})


def wait_s(free_at: float, now: float, delay: Delay) -> float:
    """How long the next match has to wait; 0: not at all."""
    return max(0.0, free_at - (delay.burst - 1) * delay.interval_s - now)


def after_match(free_at: float, now: float, delay: Delay) -> float:
    """The same state after a match now: each adds its interval (the generic cell rate algorithm)."""
    return max(free_at, now) + delay.interval_s


def held(limits: Iterable[Limited], rules: SiteRules, gauges: Mapping[Limited, Gauge], now: float) -> Held:
    """Which of these limits let nothing pass now; one of jobs that were not yet counted lets nothing pass."""
    values: dict[str, set[str]] = {}
    waits: dict[Limited, float] = {}
    why: list[tuple[Limited, str]] = []
    for limited in limits:
        gauge, most, delay = gauges.get(limited, Gauge()), rules.running.get(limited), rules.delays.get(limited)
        if most is not None and (not gauge.counted or gauge.running + gauge.matched >= most):
            values.setdefault(limited.attribute, set()).add(limited.value)
            n = gauge.running + gauge.matched
            there = f"{n} job{'' if n == 1 else 's'} there" if gauge.counted else "jobs there are being counted"
            why.append((limited, f"{limited}: {there}, of at most {most}"))
        if delay is not None and (rest_s := wait_s(gauge.free_at, now, delay)):
            values.setdefault(limited.attribute, set()).add(limited.value)
            waits[limited] = rest_s
            why.append((limited, f"{limited}: the next match in {math.ceil(rest_s * 10) / 10:g} s"))
    return Held({name: frozenset(some) for name, some in values.items()}, waits, tuple(why)) if values else FREE


def matched(limits: Iterable[Limited], rules: SiteRules, gauges: Mapping[Limited, Gauge], now: float) -> dict[Limited, Gauge]:
    """The gauges of these limits after one match that passed them."""
    after = {}
    for limited in limits:
        gauge, delay = gauges.get(limited, Gauge()), rules.delays.get(limited)
        free_at = gauge.free_at if delay is None else after_match(gauge.free_at, now, delay)
        after[limited] = replace(gauge, matched=gauge.matched + 1, free_at=free_at)
    return after


def rules_of(site: str, running: Mapping[str, Any], delays: Mapping[str, Any]) -> SiteRules:
    """The limits of a site as RUNNING_LIMITS and MATCHING_DELAYS say, in which `running_fault` and `delay_fault` find nothing."""
    most: dict[Limited, int] = {}
    for ce, attribute, value, number in _entries(running.get(site, {})):
        most[Limited(attribute, value, ce)] = int(number)
    pauses: dict[Limited, Delay] = {}
    for attribute, by_value in delays.get(site, {}).items():
        for value, said in by_value.items():
            named = said if isinstance(said, Mapping) else {"interval": said}
            pauses[Limited(attribute, value)] = Delay(float(named["interval"]), int(named.get("burst", 1)))
    return SiteRules(most, pauses)


def _entries(of_site: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Any]]:
    """CE (empty: the site), attribute, value, and what is said of it."""
    places = [("", {name: values for name, values in of_site.items() if name != CES}), *of_site.get(CES, {}).items()]
    for ce, attributes in places:
        for attribute, by_value in attributes.items():
            for value, said in by_value.items():
                yield ce, attribute, value, said


def running_fault(setting: Any) -> str | None:
    """What is wrong with RUNNING_LIMITS, in words with its place; None: nothing."""
    if not isinstance(setting, Mapping):
        return "an object is expected: {site: {attribute: {value: most jobs}}}"
    for site, of_site in setting.items():
        if not isinstance(of_site, Mapping):
            return f"{site}: an object of attributes is expected"
        of_ces = of_site.get(CES, {})
        if not isinstance(of_ces, Mapping):
            return f"{site}.{CES}: an object of computing elements is expected"
        if any(len(ce) > LONGEST_CE for ce in of_ces):
            return f"{site}.{CES}: the name of a computing element has at most {LONGEST_CE} characters"
        for place, attributes in [(site, {**of_site, CES: {}}), *((f"{site}.{CES}.{ce}", some) for ce, some in of_ces.items())]:
            if fault := _values_fault(place, attributes, _number_fault):
                return fault
    return None


def delay_fault(setting: Any) -> str | None:
    """What is wrong with MATCHING_DELAYS, in words with its place; None: nothing."""
    if not isinstance(setting, Mapping):
        return "an object is expected: {site: {attribute: {value: seconds}}}"
    return next((fault for site, some in setting.items() if (fault := _values_fault(site, some, _delay_fault))), None)


def _values_fault(place: str, attributes: Any, fault_of: Any) -> str | None:
    if not isinstance(attributes, Mapping):
        return f"{place}: an object of attributes is expected"
    for attribute, by_value in attributes.items():
        if attribute == CES and by_value == {}:
            continue
        if attribute not in ATTRIBUTES:
            near = nearest(attribute, ATTRIBUTES)
            return f"{place}.{attribute}: no attribute that can be limited; there are {', '.join(ATTRIBUTES)}" + (
                f"; the nearest is {near}" if near else ""
            )
        if not isinstance(by_value, Mapping):
            return f"{place}.{attribute}: an object of values is expected"
        for value, said in by_value.items():
            if not 0 < len(value) <= LONGEST_VALUE:
                return f"{place}.{attribute}: a value has 1 to {LONGEST_VALUE} characters, not {len(value)}"
            if fault := fault_of(said):
                return f"{place}.{attribute}.{value}: {fault}"
    return None


def _number_fault(said: Any) -> str | None:
    return None if _within(said, 10**9, int) else f"a whole number of jobs from 0 on is expected, not {str(said)[:40]!r}"


def _delay_fault(said: Any) -> str | None:
    named = said if isinstance(said, Mapping) else {"interval": said}
    if unknown := sorted(named.keys() - {"interval", "burst"}):
        return f"{unknown[0]} is unknown; there are interval and burst"
    interval, burst = named.get("interval"), named.get("burst", 1)
    if not _within(interval, 10**6, int, float) or interval == 0:
        return f"the interval must be seconds above 0, at most 1000000, not {str(interval)[:40]!r}"
    if not _within(burst, 10**6, int) or burst == 0:
        return f"the burst must be a whole number of matches from 1 on, not {str(burst)[:40]!r}"
    return None


def _within(said: Any, most: int, *kinds: type) -> bool:
    """Whether it is a number of these kinds from 0 to `most`; true and false are none."""
    return type(said) in kinds and 0 <= said <= most
