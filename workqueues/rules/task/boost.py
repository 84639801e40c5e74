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


def jobs_left(open_files: int, jobs: int, files: int) -> float:
    """How many jobs the open files of a task still need, as its latest jobs had so many files together; at least one where a file
    is open. Infinite where it had no job yet: nothing is known.
    """
    if not open_files:
        return 0.0
    return max(1.0, open_files * jobs / files) if jobs and files else float("inf")
