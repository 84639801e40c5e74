"""Which request has which lane: one that is taken up by its own requests keeps none of the others waiting."""

from __future__ import annotations

import re
from dataclasses import dataclass

from broker_site.roof.web.joint_lane import End, JointLane
from broker_site.roof.web.lane import Lane


@dataclass(frozen=True, slots=True)
class Lanes:
    """All lanes of a process.

    Jobs under way first: a heartbeat that does not come through costs a lease. Then pilots that ask; child brokers, whose
    messages are large; submissions and trials, which may reckon for a while, so that pages need not wait for them; probes; and
    everything that people do.
    """

    heartbeats: JointLane
    pilots: JointLane
    children: JointLane
    submissions: Lane
    probes: Lane
    people: Lane

    def all(self) -> tuple[Lane, ...]:
        """Every lane."""
        return (self.heartbeats, self.pilots, self.children, self.submissions, self.probes, self.people)

    def of(self, method: str, path: str) -> Lane:
        """The lane of a request."""
        if path in ("/readyz", "/metrics"):
            return self.probes
        if method == "POST":
            if path.startswith("/api/v1/jobs/") or path == "/api/v1/pilots/reports/":
                return self.heartbeats
            if path.startswith("/api/v1/pilots/"):
                return self.pilots
            if _CHILDREN.fullmatch(path):
                return self.children
            if _RECKONS.fullmatch(path):
                return self.submissions
        return self.people


_RECKONS = re.compile(r"(/api/v1)?/tasks/(\d+/(brokerage/)?what-if/)?")
_CHILDREN = re.compile(r"/api/v1/tree/(pull|fetch|report)/")


def lanes(people: int, pilots: int, statement_s: float, end: End) -> Lanes:
    """The lanes with so many threads for people, and for pilots' heartbeats; `statement_s`: the longest statement, 0 = any.

    A request keeps its thread for a few statements of the longest kind.
    """
    longest = statement_s or 20.0
    return Lanes(
        heartbeats=JointLane("heartbeats", pilots, 1000, 3 * longest, end=end),
        pilots=JointLane("pilots", pilots, 500, 3 * longest, end=end),
        children=JointLane("children", pilots, 500, 6 * longest, end=end),
        submissions=Lane("submissions", 1, 50, 6 * longest),
        probes=Lane("probes", 1, 20, longest),
        people=Lane("people", people, 100, 6 * longest),
    )
