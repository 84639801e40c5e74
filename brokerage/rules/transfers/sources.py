"""From which copy a file is brought (facts on data movement 5.5). Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from brokerage.rules.facts.network import UNKNOWN_CLOSENESS


@dataclass(frozen=True, slots=True)
class CopyPlace:
    """A storage endpoint as a source or destination of transfers. `down`: why it cannot be read now, empty if it can."""

    name: str
    site: str
    tape: bool = False
    down: str = ""


@dataclass(frozen=True, slots=True)
class SourceChoice:
    """The endpoint to bring a file from; where there is none, why."""

    place: CopyPlace | None
    reason: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """What the choice of a source knows of links, by (source site, destination site).

    `closeness`: 0 nearest; `blocked`: why nothing may be sent, only those that are blocked.
    """

    closeness: Mapping[tuple[str, str], float]
    blocked: Mapping[tuple[str, str], str]


NO_LINKS = LinkFacts({}, {})


def choose_source(
    copies: Iterable[CopyPlace], destination: CopyPlace, links: LinkFacts, failed: Collection[str] = ()
) -> SourceChoice:
    """The best copy: readable, over an open link, on disk before tape, with the fewest failures of this transfer, then nearest.

    `failed`: the endpoints from which an attempt failed, once for each. Within a site there is no link to pass.
    Reasons without a place: `no_source` (no copy at all), `src_down` (none can be read now), `link_blocked`.
    """
    others = [copy for copy in copies if copy.name != destination.name]
    if not others:
        return SourceChoice(None, "no_source", "there is no copy of it anywhere")
    readable = [copy for copy in others if not copy.down]
    if not readable:
        return SourceChoice(None, "src_down", "; ".join(f"{copy.name}: {copy.down}" for copy in others[:3]))
    reachable = [copy for copy in readable if not _blocked(copy, destination, links)]
    if not reachable:
        why = "; ".join(f"{copy.name}: {_blocked(copy, destination, links)}" for copy in readable[:3])
        return SourceChoice(None, "link_blocked", why)
    failures = list(failed)
    return SourceChoice(min(reachable, key=lambda c: (c.tape, failures.count(c.name), _distance(c, destination, links), c.name)))


def _blocked(copy: CopyPlace, destination: CopyPlace, links: LinkFacts) -> str:
    return "" if copy.site == destination.site else links.blocked.get((copy.site, destination.site), "")


def _distance(copy: CopyPlace, destination: CopyPlace, links: LinkFacts) -> float:
    """Closeness, less than nearest within a site."""
    return -1.0 if copy.site == destination.site else links.closeness.get((copy.site, destination.site), UNKNOWN_CLOSENESS)
