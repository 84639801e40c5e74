"""To which of its sites a job may be submitted now, by the state of each (row W4, facts on work queues b7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

from brokerage.rules.submission.job_kinds import FINISHING_KINDS
from workqueues.states import SITE_CLOSED, SITE_DRAINED

GRACE_S = 2 * 86_400
"""A job waits so long where all of its sites drain."""
NO_SITE, ALL_CLOSED, ALL_DRAIN = 71101, 71102, 71103
"""Codes of the errors of jobs that can go nowhere."""


class OpenSites(NamedTuple):
    """Submit to one of `sites`, wait until one takes new jobs again, or fail with `code`."""

    action: Literal["submit", "wait", "fail"]
    sites: tuple[str, ...] = ()
    code: int | None = None


def open_sites(
    kind: str,
    possible: Collection[str],
    states: Mapping[str, str],
    draining_for_s: Mapping[str, float],
    grace_s: float = GRACE_S,
) -> OpenSites:
    """`states` of sites; those of which none is known are open. `draining_for_s`: seconds since a site began to drain."""
    if not possible:
        return OpenSites("fail", code=NO_SITE)
    there = sorted(site for site in possible if states.get(site) not in SITE_CLOSED)
    if not there:
        return OpenSites("fail", code=ALL_CLOSED)
    if kind in FINISHING_KINDS:
        return OpenSites("submit", tuple(there))
    if not_draining := tuple(site for site in there if states.get(site) not in SITE_DRAINED):
        return OpenSites("submit", not_draining)
    over = all(draining_for_s.get(site, 0) > grace_s for site in there)
    return OpenSites("fail", code=ALL_DRAIN) if over else OpenSites("wait")
