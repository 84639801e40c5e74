"""Steps that the system takes by itself with a task or a job: the rule of each in words, and the configuration keys that it
depends on. Histories say when, with which numbers and why; this says by which rule. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

AGENT = "agent:"
"""How whoever is no person or pilot begins in a history."""


@dataclass(frozen=True, slots=True)
class AutomaticStep:
    """`rule`: in words; `keys`: as the configuration writes them, parts in angle brackets."""

    rule: str
    keys: tuple[str, ...] = ()


_JOBS, _PRIO = "pandaserver:job_timeout.", "pandaserver:prio_mgr."
BOOST = AutomaticStep("boost", ("task_watcher.BOOST_PROGRESS", "task_watcher.BOOST_JOBS", "task_watcher.BOOST_PRIORITY"))
USER_BOOST = AutomaticStep(
    "boost of a user's task",
    ("pandaserver:analy_eval.PROGRESS_TO_BOOST_A", "pandaserver:analy_eval.PROGRESS_TO_BOOST_B",
     "pandaserver:analy_eval.MAX_REM_JOBS_TO_BOOST_A", "task_watcher.BOOST_PRIORITY_ANALYSIS"),
)  # fmt: skip
MEMORY = AutomaticStep("memory ladder", ("jobbroker.MEMORY_RAISE_MIN_JOBS", "jobbroker.MEMORY_COMPENSATION"))
MORE_TIME = AutomaticStep("more time after a time limit")
LESS_INPUT = AutomaticStep("less input after a failure")
MEASURED = AutomaticStep(
    "needs measured by its jobs", ("dbproxy.SCOUT_RAMCOUNT_METHOD", "dbproxy.SCOUT_RAMCOUNT_MARGIN", "dbproxy.SCOUT_CPUTIME_RANK")
)
SCOUTS = AutomaticStep(
    "scouts",
    ("dbproxy.SCOUT_WRONG_CPUTIME_THRESHOLD", "dbproxy.SCOUT_NUM_SHORT", "dbproxy.SCOUT_RAM_THR_EXHAUSTED",
     "dbproxy.SCOUT_CPU_ABUSE"),
)  # fmt: skip
NO_PLACE = AutomaticStep(
    "no queue passes", ("jobbroker.PENDING_PRODUCTION", "jobbroker.PENDING_GENERIC", "watchdog.PENDING_WAIT")
)
PENDING_OVER = AutomaticStep("pending for too long", ("watchdog.PENDING_TIMEOUT_<label>",))
RETRY_LIMIT = AutomaticStep("limit of retries", ("retry_task.TASK_MAX_ATTEMPT_<label>", "retry_task.JOB_MAX_ATTEMPT_<label>"))
NOBODY_RETRIES = AutomaticStep("exhausted for too long", ("watchdog.EXHAUSTED_TIMEOUT",))
THROTTLED = AutomaticStep("throttled")
MORE_TRIES = AutomaticStep("retry rule")
GIVEN_UP = AutomaticStep("no try left", ("jobbroker.RETRY_PAUSE", "jobbroker.RETRY_PAUSE_MAX"))
SILENT = AutomaticStep("no sign of life", ("pandaserver:watcher.HEARTBEAT_TIMEOUT_<workflow>",))
USER_CAP = AutomaticStep(
    "cap of a user or group",
    (f"{_PRIO}CAP_RUNNING_USER_JOBS", f"{_PRIO}CAP_RUNNING_USER_CORES", f"{_PRIO}CAP_RUNNING_GROUP_JOBS",
     f"{_PRIO}CAP_TASKS_THROTTLE"),
)  # fmt: skip
REBROKERED = AutomaticStep(
    "brokered anew",
    ("jobbroker.REBROKER_STOPPED", "jobbroker.REBROKER_SILENT", "pandaserver:rebroker.ANALY_TIMEOUT"),
)
MERGE = AutomaticStep("merge", ("jobbroker.MERGE_SCOPE", "jobbroker.MERGE_MAX_ATTEMPT"))
TRANSFER = AutomaticStep("transfer", ("transfers.MAX_ATTEMPTS", "transfers.REST"))

NOTED: Mapping[str, AutomaticStep] = {
    step.rule: step for step in (BOOST, USER_BOOST, MEMORY, MORE_TIME, LESS_INPUT, MEASURED)
}  # fmt: skip
"""Those that leave a task in its state and are kept as notes, by their rule."""
OF_CAUSES: Mapping[str, AutomaticStep] = {
    "user_cap": USER_CAP,
    "attempts": AutomaticStep("inputs tried too often"),
    "failing": AutomaticStep("too many jobs fail", ("watchdog.MAX_JOB_FAILURE_RATE_TO_PAUSE_<label>",)),
    "disk_transfers": AutomaticStep("transfers of a user", ("anal_watchdog.USER_TRANSFER_LIMIT",)),
    "tape_staging": AutomaticStep("staging of a user", ("anal_watchdog.USER_PRESTAGE_LIMIT",)),
    "busy_sites": AutomaticStep("input only at busy queues"),
}
"""Why a task is throttled."""
OF_FILES: Mapping[str, AutomaticStep] = {
    "more memory": MEMORY,
    "limited": MORE_TRIES,
    "held": TRANSFER,
    "given up": GIVEN_UP,
}
"""What a history notes of files."""
_OF_TASKS: Mapping[tuple[str, str], AutomaticStep] = {
    ("wake", "exhausted"): PENDING_OVER,
    ("command", "exhausted"): RETRY_LIMIT,
    ("achieve", "finishing"): NOBODY_RETRIES,
    ("generate", "pending"): NO_PLACE,
    ("assign", "pending"): NO_PLACE,
}
TOO_LONG, LEASE_OVER = "too long in ", "no sign of life within the lease"
"""How histories begin to say why a job was ended that nobody ended; ledgers write them, the rule is known by them."""
_HIGH: Mapping[str, str] = {"holding": "TIMEOUT_holding_high", "transferring": "TIMEOUT_transferring_high"}
_OF_FILES_OF_JOBS: Mapping[str, AutomaticStep] = {"assigned": TRANSFER, "transferring": TRANSFER}
"""States in which a job waits for files that are brought."""


def of_task(old: str, new: str, who: str) -> AutomaticStep | None:
    """The rule of a move of a task; None where somebody asked for it, or it is the usual way."""
    if not who.startswith(AGENT):
        return None
    agent = who.removeprefix(AGENT)
    if agent == "assess":
        return SCOUTS
    if "throttled" in (old, new):
        return THROTTLED
    return _OF_TASKS.get((agent, new))


def of_job(old: str, new: str, who: str, why: str) -> AutomaticStep | None:
    """The rule of a move of a job."""
    if why.startswith(TOO_LONG):
        names = [f"{_JOBS}{name}" for name in (f"TIMEOUT_{old}", _HIGH.get(old)) if name]
        return AutomaticStep("time-out", tuple(names))
    if why.startswith(LEASE_OVER):
        return SILENT
    if "merging" in (old, new):
        return MERGE
    if new in _OF_FILES_OF_JOBS:
        return _OF_FILES_OF_JOBS[new]
    if not who.startswith(AGENT):
        return None
    if "throttled" in (old, new):
        return USER_CAP
    return REBROKERED if new == "closed" else None
