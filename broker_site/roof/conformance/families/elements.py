"""Families about elements: their course, how work is cut into them, where they may run, and which ones a broker acquires."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker_site.foundation.kernel.dice import dice
from broker_site.roof.conformance.registry import Answer, Given, Values, family
from workqueues.rules.elements.acquisition import Element, Puller, acquire, free_jobs
from workqueues.rules.elements.course import ElementVersion, inbox_state, merged
from workqueues.rules.elements.element_sites import SiteWishes, possible_sites
from workqueues.rules.elements.site_slots import Rule, SiteSlots, Step, slots
from workqueues.rules.elements.slices import event_slices, jobs_of_dataset

_VERSION = {
    "Status": "state", "PercentComplete": "percent_complete", "PercentSuccess": "percent_success", "Priority": "priority",
    "Inputs": "inputs", "ParentData": "parents", "PileupData": "pileup",
}  # fmt: skip
_STEPS: Mapping[str, Step] = {"pullWork": "pull", "getWork": "start"}
_RULES: Mapping[str, Rule] = {"seed": "document", "wmcore-2024": "practice"}


@family("wq_parent_state", given="children [parent]", expect="state")
def state_of_the_inbox(given: Given) -> Answer:
    """The state that follows from those of the elements."""
    return {"state": inbox_state(given["children"], given["parent"])}


@family("wq_merge", given="versions", expect="merged")
def one_of_two_versions(given: Given) -> Answer:
    """The fields that any version has, merged."""
    versions = [_version(version) for version in given["versions"]]
    names = {name for version in given["versions"] for name in version}
    element = merged(versions)
    return {"merged": {name: getattr(element, _VERSION[name]) if name in _VERSION else element.fixed[name] for name in names}}


@family("wq_split_block", given="blocks slice_size", expect="jobs")
def elements_of_blocks(given: Given) -> Answer:
    """An element for each block, with so many jobs."""
    return {"jobs": {name: jobs_of_dataset(size, given["slice_size"]) for name, size in given["blocks"].items()}}


@family("wq_split_mc", given="first_event total_events events_per_job max_jobs_per_element", expect="elements")
def elements_of_events(given: Given) -> Answer:
    """Elements of work without input."""
    cut = event_slices(given["first_event"], given["total_events"], given["events_per_job"], given["max_jobs_per_element"])
    return {"elements": [{"first_event": first, "last_event": last, "jobs": jobs} for first, last, jobs in cut]}


@family("wq_sites", given="element", expect="possible_sites")
def sites_of_an_element(given: Given) -> Answer:
    """The sites at which it may run."""
    return {"possible_sites": sorted(possible_sites(_wishes(given["element"])))}


@family("wq_slots", given="profile operation sites [queue_depth]", expect="slots")
def slots_of_sites(given: Given) -> Answer:
    """Slots of each site that counts."""
    sites = {name: SiteSlots(**site) for name, site in given["sites"].items()}
    depth = given["queue_depth"] or 1.0
    return {"slots": slots(sites, _STEPS[given["operation"]], _RULES[given["profile"]], depth)}


@family(
    "wq_acquire",
    given="slots elements [job_counts] [team] [schedd] [negotiating_left] [exclude] [max_elements]",
    expect="accepted job_counts",
)
def acquired_elements(given: Given) -> Answer:
    """Those that a broker gets, and the jobs that count then."""
    counts = {site: {float(priority): n for priority, n in jobs.items()} for site, jobs in (given["job_counts"] or {}).items()}
    free = free_jobs(pool["max_jobs_per_owner"], pool["fraction"], pool["executing"]) if (pool := given["schedd"]) else None
    puller = Puller(given["team"] or "", frozenset(given["exclude"] or ()), free, given["negotiating_left"] or 0)
    elements = [_element(name, Values(written)) for name, written in given["elements"].items()]
    got = acquire(elements, given["slots"], dice("wq_acquire"), counts=counts, puller=puller, most=given["max_elements"])
    now = {site: {str(int(at) if at == int(at) else at): n for at, n in jobs.items()} for site, jobs in got.counts.items()}
    return {"accepted": [element.id for element, _ in got.elements], "job_counts": now}


def _element(name: str, written: Given) -> Element:
    return Element(
        name,
        written["Priority"] or 0,
        written["CreationTime"] or 0,
        written["Jobs"] or 0,
        _wishes(written),
        team=written["TeamName"] or "",
        state=written["Status"] or "Available",
        task=written["RequestName"] or name,
        blowup=written["blowupFactor"] or 1.0,
    )


def _wishes(written: Given) -> SiteWishes:
    said = Values(written)
    return SiteWishes(
        said["SiteWhitelist"] or (),
        said["SiteBlacklist"] or (),
        said["Inputs"] or {},
        said["ParentData"] or {},
        said["PileupData"] or {},
        bool(said["ParentFlag"]),
        bool(said["NoInputUpdate"]),
        bool(said["NoPileupUpdate"]),
    )


def _version(written: Mapping[str, Any]) -> ElementVersion:
    changing = {_VERSION[name]: value for name, value in written.items() if name in _VERSION}
    return ElementVersion(**changing, fixed={name: value for name, value in written.items() if name not in _VERSION})
