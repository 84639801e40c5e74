"""Tasks that are nearly done get done: a high priority, and the express share. Source: seed 001, automatic priority boosting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Boost:
    """What becomes of a task: its priority, and whether it goes to the express share, where its VO has one."""

    priority: int
    express: bool


def boost(percent_done: float, jobs_left: float, priority: int, config: Mapping[str, Any]) -> Boost:
    """The boost of a task by how much of its input is through and how many jobs it still needs; a priority is never lowered.

    Source: seed 001 (95 % and fewer than 100 jobs: priority 900, share Express), row J11; decision D22.
    """
    near = percent_done >= config["BOOST_PROGRESS"] and jobs_left < config["BOOST_JOBS"]
    return Boost(max(priority, config["BOOST_PRIORITY"]) if near else priority, near)


@dataclass(frozen=True, slots=True)
class UserClass:
    """A class of users by the slots that they have: how far a task must be, in percent, and how few jobs left, to be boosted."""

    name: str
    most_slots: float
    progress: float
    most_left: float


def class_of(slots: int, config: Mapping[str, Any]) -> UserClass:
    """The class of a user with so many slots; C, with more than those of B, is never boosted. `config`: component analy_eval.

    Source: facts on the brokerage 3.1, on gdpconfig 1.2.8.
    """
    for name in "AB":
        if slots <= (most := config[f"USER_USAGE_THRESHOLD_{name}"]):
            return UserClass(name, most, config[f"PROGRESS_TO_BOOST_{name}"], config[f"MAX_REM_JOBS_TO_BOOST_{name}"])
    return UserClass("C", float("inf"), float("inf"), 0.0)


def user_boost(percent_done: float, jobs_left: float, priority: int, of_user: UserClass, raised: int) -> Boost:
    """The same for a task of a user of this class; `raised`: the priority that it gets."""
    near = percent_done >= of_user.progress and jobs_left <= of_user.most_left
    return Boost(max(priority, raised) if near else priority, near)


def jobs_left(open_files: int, jobs: int, files: int) -> float:
    """How many jobs the open files of a task still need, as its latest jobs had so many files together; at least one where a file
    is open. Infinite where it had no job yet: nothing is known.
    """
    if not open_files:
        return 0.0
    return max(1.0, open_files * jobs / files) if jobs and files else float("inf")
