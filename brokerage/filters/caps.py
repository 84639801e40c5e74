"""Whether the user of a task, or its working group, may have more: asked before any queue is looked at, the same for all."""

from __future__ import annotations

from brokerage.rules.decision.declare import Criterion, Numbers, filters
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Columns

QUEUED_OVER_RUNNING = 2
"""Queued jobs or cores may be so many times the cap."""


@filters(
    Criterion("cap_running_jobs", "{who} has {running_jobs} running jobs, {jobs} at most", "temporary", ("running_jobs", "jobs")),
    Criterion(
        "cap_queued_jobs",
        "{who} has {queued_jobs} jobs waiting, {waiting_jobs} at most",
        "temporary",
        ("queued_jobs", "waiting_jobs"),
    ),
    Criterion(
        "cap_running_cores", "{who} has {running_cores} running cores, {cores} at most", "temporary", ("running_cores", "cores")
    ),
    Criterion(
        "cap_queued_cores",
        "jobs of {who} for {queued_cores} cores wait, {waiting_cores} at most",
        "temporary",
        ("queued_cores", "waiting_cores"),
    ),
    Criterion("disk_quota", "the disk quota of {who} is used up", "temporary"),
    keys=("CAP_RUNNING_USER_JOBS", "CAP_RUNNING_USER_CORES", "CAP_RUNNING_GROUP_JOBS", "CAP_RUNNING_GROUP_CORES"),
)
def user_caps(ask: Ask, _queues: Columns, config: Config) -> tuple[tuple[bool, bool, bool, bool, bool], Numbers]:
    """Running jobs and cores are within the caps, queued ones within twice the caps, and there is disk quota left.

    A task with a working group counts for the group. Unset caps bind nobody, none binds merge jobs.
    Source: seed 000, analysis; facts on the brokerage 3.1.
    """
    kind, who = ("GROUP", ask.working_group) if ask.working_group else ("USER", ask.user or "the user")
    jobs, cores = config[f"CAP_RUNNING_{kind}_JOBS"] or 0, config[f"CAP_RUNNING_{kind}_CORES"] or 0
    used = ask.usage
    numbers = {
        "who": who,
        "running_jobs": used.running_jobs,
        "queued_jobs": used.queued_jobs,
        "running_cores": used.running_cores,
        "queued_cores": used.queued_cores,
        "jobs": jobs,
        "cores": cores,
        "waiting_jobs": QUEUED_OVER_RUNNING * jobs,
        "waiting_cores": QUEUED_OVER_RUNNING * cores,
    }

    def within(has: int, cap: int) -> bool:
        return not cap or ask.merge or has <= cap

    return (
        within(used.running_jobs, jobs),
        within(used.queued_jobs, QUEUED_OVER_RUNNING * jobs),
        within(used.running_cores, cores),
        within(used.queued_cores, QUEUED_OVER_RUNNING * cores),
        not used.quota_exceeded,
    ), numbers
