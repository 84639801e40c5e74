"""Child brokers as pages and REST show them: what they told last, and the elements that they have. Each read is bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connections
from django.db.models import F, QuerySet

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.permissions import may
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.kernel import clock
from workqueues.models import ChildBroker
from workqueues.rules.elements.child_state import child_state
from workqueues.rules.elements.site_slots import SiteSlots
from workqueues.rules.elements.why_waiting import ChildStand
from workqueues.states.elements import ELEMENT

EDIT = "tree:edit"
"""The right to let child brokers in, and to drain and revoke them."""
EVERYTHING = "config:edit"
"""The right that those need beside it who let a child have the work of all VOs."""
MOST_COUNTED = 1_000
"""Elements of a child that are counted."""

_SAME = (
    "name", "team", "vo", "version", "protocol", "clock_ahead_s", "last_contact", "last_error",
    "last_error_at", "created_at", "drain_since", "drain_until", "is_draining", "free_jobs", "last_pull_at",
)  # fmt: skip
"""Columns that are shown as they are stored."""

_COUNTS = f"""
SELECT c.id, e.status, count(*) FROM unnest(%(children)s::int[]) AS c(id) CROSS JOIN LATERAL (
    SELECT status FROM workqueues_element WHERE child_id = c.id AND status IN ({ELEMENT.taken.sql}) ORDER BY id LIMIT %(most)s
) AS e GROUP BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class ChildSite:
    """A site of a child as it told last. `waiting`: jobs that wait there, by priority, the highest first."""

    name: str
    state: str
    pending_slots: int
    running_slots: int
    running_jobs: int
    waiting: tuple[tuple[int, int], ...]

    @property
    def n_waiting(self) -> int:
        return sum(n for _, n in self.waiting)


@dataclass(frozen=True, slots=True)
class ChildRow:
    """One child broker. `state`: of `child_state`; `token`: the part of its token that may be displayed; slots and jobs: of all
    its sites; `elements`: state -> elements that it has, at least where `elements_bounded`; `asked`, `got`, `why`: of its last
    pull, the number of elements wanted and given, and the reasons why it was no more with how often each held.
    """

    name: str
    state: str
    team: str
    vo: str
    token: str
    version: str
    protocol: int | None
    instance: str
    incarnation: str
    clock_ahead_s: float
    last_contact: datetime | None
    last_error: str
    last_error_at: datetime | None
    created_at: datetime
    drain_since: datetime | None
    drain_until: datetime | None
    is_draining: bool
    free_jobs: int | None
    n_sites: int
    pending_slots: int
    running_slots: int
    running_jobs: int
    waiting_jobs: int
    elements: Mapping[str, int]
    elements_bounded: bool
    last_pull_at: datetime | None
    asked: int | None
    got: int | None
    why: Mapping[str, int]

    @property
    def slots(self) -> int:
        """For jobs that wait and that run, at all its sites."""
        return self.pending_slots + self.running_slots

    @property
    def n_elements(self) -> int:
        return sum(self.elements.values())


def may_edit(caller: Principal, vo: str) -> bool:
    """Whether the caller may add or change a child that gets the work of this VO; empty: of all."""
    return may(caller, EDIT, vo) if vo else may(caller, EDIT) and may(caller, EVERYTHING)


def children(using: str = "default") -> QuerySet[ChildBroker]:
    """All child brokers by name, with what may be known of their tokens."""
    told = {"token": F("credential__prefix"), "revoked_at": F("credential__revoked_at")}
    return ChildBroker.objects.using(using).annotate(**told).order_by("name")


def child_rows(using: str = "default", name: str | None = None) -> list[ChildRow]:
    """Their rows, or the one of this name; two statements."""
    found = list(children(using) if name is None else children(using).filter(name=name))
    counts = elements_of_children([child.id for child in found], using)
    now, quiet_s = clock.now(), quiet_after_s()
    return [_row(child, counts.get(child.id, {}), now, quiet_s) for child in found]


def quiet_after_s() -> float:
    """Seconds after which a child counts as not heard of: those of a lease, after which what it has returns."""
    return float(gdpconfig.value("elements", "LEASE"))


def elements_of_children(ids: Sequence[int], using: str = "default") -> dict[int, dict[str, int]]:
    """Child -> state -> elements that it has, MOST_COUNTED of each child at most, and one more; one statement."""
    counts: dict[int, dict[str, int]] = {}
    if ids:
        with connections[using].cursor() as cursor:
            cursor.execute(_COUNTS, {"children": list(ids), "most": MOST_COUNTED + 1})
            for child, status, n in cursor.fetchall():
                counts.setdefault(child, {})[status] = n
    return counts


def sites_of(child: ChildBroker) -> list[ChildSite]:
    """Its sites by name."""
    return [
        ChildSite(name, said.state, said.pending_slots, said.running_slots, said.running_jobs, _waiting(child, name))
        for name, said in sorted(_slots(child).items())
    ]


def stands(using: str = "default") -> list[tuple[ChildBroker, ChildStand]]:
    """Every child with what it is to an element that waits; two statements."""
    found = list(children(using))
    most_held = int(gdpconfig.value("elements", "MOST_HELD"))
    counts = elements_of_children([child.id for child in found], using)
    now, quiet_s = clock.now(), quiet_after_s()
    return [(child, _stand(child, counts.get(child.id, {}), now, quiet_s, most_held)) for child in found]


def _stand(child: ChildBroker, counts: Mapping[str, int], now: datetime, quiet_s: float, most_held: int) -> ChildStand:
    heard = None if child.last_contact is None else (now - child.last_contact).total_seconds()
    held = sum(counts.values())
    if held > MOST_COUNTED:  # whether it has all that it may, it was told at its last pull: to count them takes too long here
        held = max(held, _last_pull(child.last_pull)["why"].get("holds_most", 0))
    return ChildStand(
        team=child.team,
        vo=child.vo,
        is_revoked=vars(child)["revoked_at"] is not None,
        drained_here=child.drain_since is not None,
        is_draining=child.is_draining,
        heard_s=heard,
        quiet_s=quiet_s,
        sites=_slots(child),
        jobs={name: dict(_waiting(child, name)) for name in child.jobs_by_priority},
        free_jobs=child.free_jobs,
        negotiating=counts.get("Negotiating", 0),
        held=held,
        most_held=most_held,
    )


def _row(child: ChildBroker, counts: Mapping[str, int], now: datetime, quiet_s: float) -> ChildRow:
    sites, revoked_at = sites_of(child), vars(child)["revoked_at"]
    state = child_state(
        now,
        quiet_s,
        is_revoked=revoked_at is not None,
        last_contact=child.last_contact,
        drain_since=child.drain_since,
        drain_until=child.drain_until,
        is_draining=child.is_draining,
    )
    bounded = sum(counts.values()) > MOST_COUNTED
    return ChildRow(
        **{name: getattr(child, name) for name in _SAME},
        state=state,
        instance=str(child.instance or ""),
        incarnation=str(child.incarnation or ""),
        token=vars(child)["token"],
        n_sites=len(sites),
        pending_slots=sum(site.pending_slots for site in sites),
        running_slots=sum(site.running_slots for site in sites),
        running_jobs=sum(site.running_jobs for site in sites),
        waiting_jobs=sum(site.n_waiting for site in sites),
        elements={status: counts[status] for status in ELEMENT.course if status in counts},
        elements_bounded=bounded,
        **_last_pull(child.last_pull),
    )


def _slots(child: ChildBroker) -> dict[str, SiteSlots]:
    return {
        name: SiteSlots(said["state"], said["pending_slots"], said["running_slots"], said.get("running_jobs", 0))
        for name, said in child.sites.items()
    }


def _waiting(child: ChildBroker, site: str) -> tuple[tuple[int, int], ...]:
    there = child.jobs_by_priority.get(site, {})
    return tuple(sorted(((int(priority), n) for priority, n in there.items()), reverse=True))


def _last_pull(said: Mapping[str, Any]) -> dict[str, Any]:
    """What the ledger of pulls keeps of the last one."""
    answer = said.get("answer") or {}
    why = {reason: n for reason, n in answer.get("why", {}).items() if n}
    return {"asked": said.get("most"), "got": len(answer["elements"]) if answer else None, "why": why}
