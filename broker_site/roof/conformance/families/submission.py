"""Families about the submission of jobs to sites: thresholds, sites that are open, and what a cycle submits."""

from __future__ import annotations

from typing import Any

from broker_site.roof.conformance.registry import Answer, Given, family
from brokerage.rules.submission.open_sites import GRACE_S, open_sites
from brokerage.rules.submission.site_thresholds import thresholds
from brokerage.rules.submission.under_thresholds import MOST_PER_CYCLE, JobGroup, Load, SiteLoad, submit

_SITE = "site"


@family("wq_thresholds", given="cpu_slots io_slots agents", expect="site_running site_pending cpu_task_pending io_task_pending")
def thresholds_of_a_site(given: Given) -> Answer:
    """By its slots and the brokers that share them."""
    site, cpu, io = thresholds(given["cpu_slots"], given["io_slots"], given["agents"])
    return {
        "site_running": site.running,
        "site_pending": site.pending,
        "cpu_task_pending": cpu.pending,
        "io_task_pending": io.pending,
    }


@family("js_sites", given="type possible states [drain_age_s] [grace_s]", expect="action sites code")
def sites_for_a_job(given: Given) -> Answer:
    """Where it may go now."""
    grace_s = GRACE_S if given["grace_s"] is None else given["grace_s"]
    told = open_sites(given["type"], given["possible"], given["states"], given["drain_age_s"] or {}, grace_s)
    return {"action": told.action, "sites": list(told.sites), "code": told.code}


@family(
    "js_submit",
    given="site_state jobs [cycles] [pending_to_running_each_cycle] [max_per_cycle]",
    expect="submitted_last_cycle submitted_total",
)
def submitted_jobs(given: Given) -> Answer:
    """Cycle after cycle, what is left of each kind of jobs."""
    state, total, last = given["site_state"], dict.fromkeys(given["jobs"], 0), dict[str, int]()
    load = SiteLoad(_load(state["site"]), {kind: _load(written) for kind, written in state["types"].items()})
    most = MOST_PER_CYCLE if given["max_per_cycle"] is None else given["max_per_cycle"]
    for _ in range(given["cycles"] or 1):
        if given["pending_to_running_each_cycle"]:
            load = load.started()
        done = submit([_group(name, said, total[name]) for name, said in given["jobs"].items()], {_SITE: load}, most)
        load, last = done.load[_SITE], {name: done.jobs.get((name, _SITE), 0) for name in total}
        total = {name: n + last[name] for name, n in total.items()}
    return {"submitted_last_cycle": last, "submitted_total": total}


def _load(written: dict[str, Any]) -> Load:
    running_slots: int = written["max_slots" if "max_slots" in written else "running_slots"]
    return Load(written["pending_slots"], running_slots, written["pending"], written["running"], written.get("highest_priority"))


def _group(name: str, said: dict[str, Any], submitted: int) -> JobGroup:
    return JobGroup(name, said["type"], said["task_priority"], said["priority"], said["count"] - submitted, [_SITE])
