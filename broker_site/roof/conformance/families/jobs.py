"""Families about the files and jobs of a task: cutting input into jobs, time-outs of jobs, tries of files, the end of a task."""

from __future__ import annotations

from collections.abc import Sequence

import brokerage.config_keys
from broker_site.foundation.gdpconfig.values import Config, from_document
from broker_site.roof.conformance.registry import Answer, Given, family
from brokerage.rules.dispatch.fast_rebrokerage import jobs_to_move, thresholds
from brokerage.rules.dispatch.timeouts import QueueFacts, limit_s, silence_s
from brokerage.rules.placement.user_priority import user_job_priority
from workqueues.rules.jobs.event_ranges import after_try
from workqueues.rules.jobs.feeding import NewFile, with_events
from workqueues.rules.jobs.job_size import GB, size_budgets
from workqueues.rules.jobs.memory_ladder import next_step, raises_task
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.rules.task.boost import boost
from workqueues.rules.task.finish import DatasetCounts, final_status
from workqueues.rules.throttle.attempts import rest_min
from workqueues.splitters.by_events import by_events
from workqueues.splitters.by_files import by_files
from workqueues.splitters.protocol import Files, JobLimits, JobPlan
from workqueues.splitters.secondaries import scaled

SERVER = brokerage.config_keys.SERVER
HOUR_S = 3600.0
SHARE = "MC"
FAST_REBROKERAGE = {
    "ratio": "FAST_REBRO_THRESHOLD_NQNR_RATIO",
    "frac": "FAST_REBRO_THRESHOLD_NQUEUE_FRAC",
    "limit": f"FAST_REBRO_THRESHOLD_NQUEUE_{SHARE}",
}
QUEUE_FACTS = {"site_status": "status"} | {name: name for name in ("catchall", "workflow", "transtimehi", "transtimelo")}


@family("event_splitting", given="files n_per_job", expect="jobs")
def event_splitting(given: Given) -> Answer:
    """The first and last event of each file that a job has."""
    fed = with_events([NewFile(name, n_events=n) for name, n in given["files"]])
    names, counts = [f.lfn for f in fed], [f.n_events or 0 for f in fed]
    files = Files(range(len(names)), n_events=counts, firsts=[0] * len(names), totals=counts)
    split = by_events(files, SplitRules(events_per_job=given["n_per_job"]), JobLimits(len(names) or 1, len(names) or 1))
    return {"jobs": [_ranges(job, names, counts) for job in split]}


def _ranges(job: JobPlan, names: Sequence[str], counts: Sequence[int]) -> list[list[str | int]]:
    ranges: list[list[str | int]] = [[names[i], 0, counts[i] - 1] for i in range(job.start, job.stop)]
    ranges[0][1] = job.skip
    if job.upto:
        ranges[-1][2] = job.upto - 1
    return ranges


@family("secondary_dataset", given="n_master ratio", expect="n_secondary")
def secondary_dataset(given: Given) -> Answer:
    """How many files of a secondary dataset go with so many of the master."""
    return {"n_secondary": scaled(given["ratio"], given["n_master"])}


@family("size_splitting", given="sizes_gb n_gb_per_job out_ratio work_gb", expect="jobs")
def size_splitting(given: Given) -> Answer:
    """The sizes of the files of each job."""
    sizes = given["sizes_gb"]
    budgets = size_budgets(given["n_gb_per_job"], given["out_ratio"], 0.0, given["work_gb"])
    files = Files(range(len(sizes)), [round(gb * GB) for gb in sizes])
    return {"jobs": [sizes[job.start : job.stop] for job in by_files(files, SplitRules(), JobLimits(budgets=tuple(budgets)))]}


@family(
    "timeout",
    given="state [priority] [event] [workflow] [hb] [substatus] [laststart_h] [transtimehi] [transtimelo] "
    "[site_status] [catchall]",
    expect="timeout_h",
)
def timeout(given: Given) -> Answer:
    """Limit of silence for the event `heartbeat`, else limit of the state."""
    queue = QueueFacts(
        **{ours: given[theirs] for theirs, ours in QUEUE_FACTS.items() if theirs in given},
        idle_s=None if given["laststart_h"] is None else given["laststart_h"] * HOUR_S,
    )
    if given.get("event") == "heartbeat":
        limits_s = {f"HEARTBEAT_TIMEOUT_{w}": hours * HOUR_S for w, hours in given.get("hb", {}).items() if hours is not None}
        config = {**Config().component("watcher", app=SERVER), **limits_s}
        limit = silence_s(given["state"], given.get("substatus"), "", queue, config)
    else:
        limit = limit_s(given["state"], given.get("priority", 0), queue, Config().component("job_timeout", app=SERVER))
    return {"timeout_h": None if limit is None else limit / HOUR_S}


@family("fast_rebrokerage", given="nq nr nq_total [ratio] [frac] [limit] [has_nslots]", expect="trigger jobs_to_move")
def fast_rebrokerage(given: Given) -> Answer:
    """How many jobs of a share leave the queue, and whether any do. The thresholds are read as keys are: 0 there is unset."""
    keys = {ours: given[theirs] for theirs, ours in FAST_REBROKERAGE.items() if theirs in given}
    config = from_document({f"{SERVER}:rebroker": keys})
    over = thresholds(SHARE, config.component("rebroker", app=SERVER))
    n = jobs_to_move(given["nq"], given["nr"], given["nq_total"], over, has_slots=bool(given["has_nslots"]))
    return {"trigger": n > 0, "jobs_to_move": n}


@family("retry_attempts", given="attempt max_attempt", expect="retry")
def retry_attempts(given: Given) -> Answer:
    """`attempt` counts the tries made; the rule is asked after the last of them."""
    tried = after_try(given["attempt"] - 1, given["max_attempt"], 0, None, "failed")
    return {"retry": tried.status == "ready"}


@family("priority_boost", given="pct_done jobs_left prio", expect="priority gshare_express")
def priority_boost(given: Given) -> Answer:
    """The share becomes the express share where the tree has one."""
    boosted = boost(given["pct_done"], given["jobs_left"], given["prio"], Config().component("task_watcher"))
    return {"priority": boosted.priority, "gshare_express": boosted.express}


@family("user_job_priority", given="offset n_jobs", expect="priority")
def priority_of_a_users_job(given: Given) -> Answer:
    """The priority of the next job of a user with so many, as of a task of priority 1000."""
    return {"priority": user_job_priority(given["n_jobs"], offset=given["offset"])}


@family("throttled_duration", given="max_attempt num_throttled", expect="throttled minutes")
def throttled_duration(given: Given) -> Answer:
    """`max_attempt`: the largest number of tries among the files that have not ended."""
    minutes = rest_min(given["max_attempt"], given["num_throttled"])
    return {"throttled": minutes > 0, "minutes": minutes}


@family("memory_retry", given="max_pss ram_count unit base cores", expect="new")
def memory_of_next_try(given: Given) -> Answer:
    """The ramCount of the next try of a job that ran out of memory."""
    return {"new": next_step(given["max_pss"], given["ram_count"], given["unit"], given["base"], given["cores"])}


@family("memory_retry", given="n_failed_memory n_jobs", expect="raise_task")
def memory_of_the_task(given: Given) -> Answer:
    """Whether the whole task asks for more."""
    return {"raise_task": raises_task(given["n_failed_memory"], given["n_jobs"])}


@family("task_final_status", given="n_total n_ok", expect="status")
def task_final_status(given: Given) -> Answer:
    """Input files of the master datasets, all tries over; neither goal nor parent."""
    total, good = given["n_total"], given["n_ok"]
    counts = DatasetCounts(
        "input",
        "ready",
        n_files=total,
        n_files_to_be_used=total,
        n_files_used=total,
        n_files_finished=good,
        n_files_failed=total - good,
    )
    return {"status": final_status("prepared", [counts]).status}
