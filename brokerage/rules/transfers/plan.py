"""What happens to a transfer whose turn has come: from where it is brought, or why not now. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from brokerage.rules.transfers.room import Room, Waiting, Way
from brokerage.rules.transfers.sources import CopyPlace, LinkFacts, choose_source

Verdict = Literal["begin", "elsewhere", "rest", "seen", "unwished", "no_source"]


class Due(NamedTuple):
    """A transfer whose turn has come, as it stands. `there`: state of the copy at its destination, empty: there is none."""

    waiting: Waiting
    file_id: int
    failed_sources: Collection[str]
    wished: bool
    there: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of one. `elsewhere`: it is planned from another place, over whose link its turn comes anew."""

    due: Due
    verdict: Verdict
    source: CopyPlace | None = None
    reason: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """Storage endpoints and links at one moment. `closed`: endpoint -> reason and words why nothing can be written there."""

    places: Mapping[str, CopyPlace]
    closed: Mapping[str, tuple[str, str]]
    links: LinkFacts


def plan(due: Due, copies: Sequence[CopyPlace], grid: Grid, room: Room) -> Plan:
    """What becomes of a transfer for which room was taken; where it does not begin, that is given back."""
    decided = _decide(due, copies, grid, room)
    if decided.verdict != "begin":
        room.give_back(due.waiting)
    return decided


def _decide(due: Due, copies: Sequence[CopyPlace], grid: Grid, room: Room) -> Plan:
    one = due.waiting
    destination = grid.places.get(one.destination)
    if not due.wished:
        return Plan(due, "unwished", reason="no_wish", why="nobody wants it any more")
    if due.there == "available":
        return Plan(due, "seen", reason="seen", why="the file is there already")
    if destination is None:
        return Plan(due, "rest", reason="dst_down", why=f"{one.destination} is not a storage endpoint now")
    if due.there == "deleting":
        return Plan(due, "rest", reason="dst_down", why=f"the copy that was at {one.destination} is still being removed")
    if one.destination in grid.closed:
        return Plan(due, "rest", None, *grid.closed[one.destination])
    choice = choose_source(copies, destination, grid.links, due.failed_sources)
    if choice.place is None:
        return Plan(due, "no_source" if choice.reason == "no_source" else "rest", reason=choice.reason, why=choice.why)
    place = choice.place
    if place.name == one.source:
        return Plan(due, "begin", place)
    if Way(place.site, destination.site) != one.way:
        return Plan(due, "elsewhere", place)
    room.give_back(one)
    fits = room.fits(one.way, one.express, place.name, one.destination)
    room.take(one.way, one.express, one.share, place.name if fits else one.source, one.destination)
    return Plan(due, "begin" if fits else "elsewhere", place)
