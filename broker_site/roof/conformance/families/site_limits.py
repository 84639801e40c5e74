"""Families about limits that sites advertise, and the choice of a site by the stations that it advertises."""

from __future__ import annotations

from typing import Any

from broker_site.roof.conformance.registry import Answer, Given, family
from brokerage.rules.dispatch.site_limits import (
    AS_WRITTEN,
    Advertisement,
    ExecutionSite,
    SiteState,
    advertised,
    candidates,
    give,
    probability,
)


@family("sam_limits", given="events", expect="matched CurMatches JobsMatchedSinceLastAdvertisement")
def limits_of_a_site(given: Given) -> Answer:
    """Advertisements, and rounds in which so many idle jobs want the site; how many each round gave."""
    state, matched = SiteState(Advertisement()), []
    for event in given["events"]:
        if "ad" in event:
            state = advertised(_ad(event["ad"]))
        else:
            state, n = give(state, event["idle_jobs"])
            matched.append(n)
    return {"matched": matched, "CurMatches": state.cur_matches, "JobsMatchedSinceLastAdvertisement": state.matched}


@family("sam_broker", given="[job_stations] sites", expect="candidates probability_each")
def choice_of_a_site(given: Given) -> Answer:
    """The sites that a job with these stations may go to, and how probable each is."""
    sites = [
        ExecutionSite(name, frozenset(_stations(said.get("stations"))), advertised(_ad(said.get("ad") or {})))
        for name, said in ((name, site or {}) for name, site in given["sites"].items())
    ]
    names = candidates(_stations(given["job_stations"]), sites)
    return {"candidates": names, "probability_each": probability(names)}


def _stations(written: str | list[str] | None) -> list[str]:
    """One station or a list of them."""
    return [written] if isinstance(written, str) else written or []


def _ad(written: dict[str, Any]) -> Advertisement:
    return Advertisement(**{ours: written.get(theirs) for ours, theirs in AS_WRITTEN.items()})
