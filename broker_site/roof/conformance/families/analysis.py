"""Families of the analysis job broker, and the scratch disk of both brokers."""

from __future__ import annotations

from collections.abc import Mapping
from math import isinf

from broker_site.roof.conformance.families.one_queue import (
    chunk,
    config_with,
    defaults,
    factor_of,
    queue,
    task,
    times,
    usage,
    verdicts_of,
)
from broker_site.roof.conformance.registry import Answer, Given, family
from brokerage.rules.facts.ask import Ask
from brokerage.rules.facts.local_input import wants_local_input
from brokerage.states import JOB
from workqueues.rules.jobs.job_size import job_size_gb
from workqueues.rules.jobs.resource_type import ram_per_core, resource_type

MB_PER_GB = 1000.0

SCALES: Mapping[str | None, tuple[float, str | None]] = {
    "events": (MB_PER_GB, "MBPerEvent"),
    "input": (1.0, "MB"),
    None: (1.0, None),
}
"""What the output scales with -> factor to our unit, which is GB per event or GB per GB of input in a case."""

SCRATCH = {"production": "scratch", "analysis": "scratch_analysis", None: "scratch"}
"""The filter of each broker."""


@family(
    "analysis_throttle", given="n_run_jobs n_queued_jobs n_run_cores n_queued_cores [cap_jobs] [cap_cores]", expect="throttled"
)
def throttle(given: Given) -> Answer:
    used = usage(
        running_jobs=given["n_run_jobs"],
        queued_jobs=given["n_queued_jobs"],
        running_cores=given["n_run_cores"],
        queued_cores=given["n_queued_cores"],
    )
    config = config_with(given, {"cap_jobs": "CAP_RUNNING_USER_JOBS", "cap_cores": "CAP_RUNNING_USER_CORES"})
    return {"throttled": not all(verdicts_of("user_caps", task(usage=used), queue(), config)[0])}


@family("analysis_locality", given="task_priority io_intensity [cutoff]", expect="locality_check")
def locality(given: Given) -> Answer:
    """Whether input must be local."""
    ask = task(task_priority=given["task_priority"], io_intensity=given["io_intensity"])
    return {"locality_check": wants_local_input(ask, config_with(given, {"cutoff": "IO_INTENSITY_CUTOFF_USER"}))}


@family("analysis_filter", given="criterion running queued", expect="accepted")
def overload(given: Given) -> Answer:
    """Waiting against running jobs."""
    table = queue(running=given["running"], activated=given["queued"])
    return {"accepted": all(verdicts_of("overload", Ask(), table)[0])}


@family("analysis_filter", given="criterion failed closed finished", expect="accepted")
def bad_site(given: Given) -> Answer:
    """Jobs of the task at the queue; that any was closed is another criterion."""
    counts = {f"task_{what}": given[what] for what in JOB.tried}
    return {"accepted": verdicts_of("closed_and_badsite", Ask(), queue(**counts))[0][1]}


@family("analysis_per_user_limit", given="nq nr nq_user nr_user n_users share_starts_per_hour", expect="user_limit skip")
def per_user_limit(given: Given) -> Answer:
    """What one user may have waiting."""
    table = queue(
        activated=given["nq"],
        running=given["nr"],
        user_queued=given["nq_user"],
        user_running=given["nr_user"],
        n_users=given["n_users"],
        starts_per_hour=given["share_starts_per_hour"],
    )
    verdicts, numbers = verdicts_of("user_queue_limit", Ask(), table)
    return {"user_limit": None if numbers["limit"] == float("inf") else numbers["limit"], "skip": not all(verdicts)}


@family("analysis_weight", given="running activated assigned starting defined", expect="weight")
def weight(given: Given) -> Answer:
    return {"weight": factor_of("running_over_all_queued", Ask(), queue(**given))}


@family(
    "disk",
    given="input_gb out_per_unit_gb scale n_events work_gb direct_io maxwdir_gb cores [kind]",
    expect="need_gb limit_gb accepted",
)
def scratch(given: Given) -> Answer:
    """Scratch disk of a job; output in GB per event or per GB of input."""
    factor, unit = SCALES[given["scale"]]
    ask = task(
        out_disk_count=times(given["out_per_unit_gb"], factor),
        out_disk_unit=unit,
        work_disk_count=given["work_gb"],
        work_disk_unit="GB",
        chunk=chunk(n_events=given["n_events"], gb=given["input_gb"]),
    )
    maxwdir = times(given["maxwdir_gb"], MB_PER_GB)
    table = queue(maxwdir=maxwdir, corecount=given["cores"], direct_access_lan=given["direct_io"])
    verdicts, numbers = verdicts_of(SCRATCH[given["kind"]], ask, table)
    return {
        "need_gb": numbers["need_mb"] / MB_PER_GB,
        "limit_gb": None if isinf(numbers["limit_mb"]) else numbers["limit_mb"] / MB_PER_GB,
        "accepted": all(verdicts),
    }


@family("disk", given="input_gb out_per_mb_mb work_gb", expect="need_gb")
def size_of_a_job(given: Given) -> Answer:
    """What nGBPerJob is compared with."""
    return {"need_gb": job_size_gb(given["input_gb"] or 0.0, given["out_per_mb_mb"] or 0.0, given["work_gb"] or 0.0)}


@family("disk", given="free_gb", expect="accepted")
def free_space(given: Given) -> Answer:
    return {"accepted": all(verdicts_of("storage_space", Ask(), queue(space_gb=given["free_gb"]))[0])}


@family("resource_type", given="kind cores ram unit [base]", expect="resource_type ram_per_core")
def type_of_a_task(given: Given) -> Answer:
    cores, ram, unit, base = given["cores"], given["ram"], given["unit"] or "MB", given["base"]
    compensation = defaults()["MEMORY_COMPENSATION"]
    return {
        "resource_type": resource_type(cores, ram, unit, base, compensation=compensation),
        "ram_per_core": ram_per_core(cores, ram, unit, base, compensation),
    }
