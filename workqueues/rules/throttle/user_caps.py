"""How much users and groups may have at once: beyond it their waiting jobs are held back, near it their tasks make no more.

Source: seed 001, throttled jobs and tasks (row J26): more running jobs than CAP_RUNNING_USER_JOBS; facts on workflows 7.10 and on
users 7 for the hysteresis. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

CAUSE = "user_cap"
"""The cause of such a task, and the sub-status of a job that is held back for it."""
QUEUED_OVER_RUNNING = 2
"""Queued jobs or cores may be so many times the cap."""
GROUP = "group:"

Step = Literal["hold", "stay", "go"]
"""What becomes of them: held back, left as they are, or let go."""


class Used(NamedTuple):
    """What a user or group has at once; `queued`: what neither runs nor delivers."""

    running_jobs: int = 0
    running_cores: int = 0
    queued_jobs: int = 0
    queued_cores: int = 0


class Caps(NamedTuple):
    """The most running jobs and cores; 0 = no limit."""

    jobs: int = 0
    cores: int = 0


class CapVerdict(NamedTuple):
    """What becomes of the jobs or tasks of an owner, and why, with numbers where they are held back."""

    step: Step
    why: str = ""


def caps_of(owner: str, config: Mapping[str, Any]) -> Caps:
    """The caps of a user or group. `config`: component prio_mgr."""
    kind = "GROUP" if owner.startswith(GROUP) else "USER"
    return Caps(config[f"CAP_RUNNING_{kind}_JOBS"] or 0, config[f"CAP_RUNNING_{kind}_CORES"] or 0)


def on_jobs(owner: str, used: Used, caps: Caps, config: Mapping[str, Any]) -> CapVerdict:
    """Waiting jobs are held back with more running than the cap, and let go with less than CAP_JOBS_RELEASE of it."""
    running = [(has, cap, what) for has, cap, what in _compared(used, caps) if what.startswith("running")]
    for has, cap, what in running:
        if has > cap:
            return CapVerdict("hold", f"{_named(owner)} has {has:,} {what}, {cap:,} at most")
    free = all(has < config["CAP_JOBS_RELEASE"] * cap for has, cap, _ in running)
    return CapVerdict("go" if free else "stay")


def on_tasks(owner: str, used: Used, caps: Caps, config: Mapping[str, Any]) -> CapVerdict:
    """Tasks make no more jobs from CAP_TASKS_THROTTLE of the cap on, running ones, or of twice the cap, queued ones, and go on
    below CAP_TASKS_RELEASE of both.
    """
    part = config["CAP_TASKS_THROTTLE"]
    for has, cap, what in _compared(used, caps):
        if has > part * cap:
            near = f"; beyond {100 * part:g} % of that no more are made" if has < cap else ""
            return CapVerdict("hold", f"{_named(owner)} has {has:,} {what}, {cap:,} at most{near}")
    free = all(has < config["CAP_TASKS_RELEASE"] * cap for has, cap, _ in _compared(used, caps))
    return CapVerdict("go" if free else "stay")


def _compared(used: Used, caps: Caps) -> Iterator[tuple[int, int, str]]:
    """What the owner has, the most of it, and what it is; only where there is a limit."""
    for cap, what, running, queued in (
        (caps.jobs, "jobs", used.running_jobs, used.queued_jobs),
        (caps.cores, "cores", used.running_cores, used.queued_cores),
    ):
        if cap:
            yield running, cap, f"running {what}"
            yield queued, QUEUED_OVER_RUNNING * cap, f"waiting {what}"


def _named(owner: str) -> str:
    return f"the group {owner.removeprefix(GROUP)}" if owner.startswith(GROUP) else owner
