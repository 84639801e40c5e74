"""For how many jobs a child broker may pull elements to each of its sites (rows W2, W3; facts on work queues b5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from workqueues.states import SITE_DRAINED, SITE_OPEN

Step = Literal["pull", "start"]
"""`pull`: from the parent to the child; `start`: what was pulled becomes jobs."""
Rule = Literal["document", "practice"]
"""How slots are counted: as the document says, or as is practice of late: pending slots, of which a pull leaves some."""


@dataclass(frozen=True, slots=True)
class SiteSlots:
    """A site of the child: its state, the jobs that may wait and run there, and those that run."""

    state: str
    pending_slots: int
    running_slots: int
    running_jobs: int = 0


_COUNTS: dict[tuple[Rule, Step], Callable[[SiteSlots, float], float]] = {
    ("document", "pull"): lambda site, _: site.pending_slots + site.running_slots,
    ("document", "start"): lambda site, _: site.pending_slots + site.running_slots - site.running_jobs,
    ("practice", "pull"): lambda site, depth: site.pending_slots * depth,
    ("practice", "start"): lambda site, _: site.pending_slots,
}


def slots(sites: Mapping[str, SiteSlots], step: Step, rule: Rule = "document", queue_depth: float = 1.0) -> dict[str, float]:
    """Slots of each site that counts at this step: those that drain start what they have, and pull nothing more.

    `queue_depth`: the part of the pending slots that a pull fills in practice. Below zero where more runs than slots are there.
    """
    states = SITE_OPEN if step == "pull" else SITE_OPEN | SITE_DRAINED
    return {name: _COUNTS[rule, step](site, queue_depth) for name, site in sites.items() if site.state in states}
