"""Families about scouts: what they measure, and when they exhaust a task."""

from __future__ import annotations

import workqueues.config_keys  # noqa: F401 - declares the keys
from broker_site.foundation.gdpconfig.values import Config
from broker_site.roof.conformance.registry import Answer, Given, family
from workqueues.rules.jobs import measured_needs
from workqueues.rules.jobs.measured_needs import JobFigures
from workqueues.rules.task.scouts import too_short, wrong_cpu_time


@family("scouts", given="jobs base eff_pct", expect="cpuTime")
def cpu_time(given: Given) -> Answer:
    """HS06 s for each event, unrounded."""
    jobs = [JobFigures(job["exec_s"], job["cores"], job["power"], job["events"]) for job in given["jobs"]]
    return {"cpuTime": measured_needs.cpu_time(jobs, given["base"], given["eff_pct"])}


@family("scouts", given="maxpss_mb base cores", expect="ramCount")
def ram_count(given: Given) -> Answer:
    """MB for each core, by the largest."""
    return {"ramCount": measured_needs.ram_count(given["maxpss_mb"], given["base"], given["cores"])}


@family("scouts", given="read_kb written_kb exec_s", expect="diskIO")
def disk_io(given: Given) -> Answer:
    """kB/s."""
    return {"diskIO": measured_needs.disk_io(given["read_kb"], given["written_kb"], given["exec_s"])}


@family("scouts", given="in_kb out_kb wall_s cores", expect="ioIntensity")
def io_intensity(given: Given) -> Answer:
    """kB/s for each core, of one job."""
    return {"ioIntensity": measured_needs.io_intensity(given["in_kb"], given["out_kb"], given["wall_s"], given["cores"])}


@family("scouts", given="kind measured defined", expect="exhausted")
def wrong_definition(given: Given) -> Answer:
    """cpuTime as measured against that of the task's definition."""
    factor = Config().component("dbproxy")["SCOUT_WRONG_CPUTIME_THRESHOLD"]
    return {"exhausted": given["kind"] == "production" and wrong_cpu_time(given["measured"], given["defined"], factor)}


@family("scouts", given="kind n_short n_expected", expect="exhausted")
def short_jobs(given: Given) -> Answer:
    """Scouts that ended too soon, and the jobs that would follow."""
    config = Config().component("dbproxy")
    return {"exhausted": given["kind"] == "analysis" and too_short(given["n_short"], given["n_expected"], config)}
