"""What all jobs of a task require of a resource, besides their slot and their queue (rows D1, D2; decision H6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from brokerage.rules.dispatch.requirement import Requirement, with_sets
from brokerage.rules.dispatch.resource import listed
from brokerage.rules.facts.software import Platform, parse_architecture

PARAMETERS = MappingProxyType(
    {
        "stations": "stations",
        "grid_ces": "gridCEs",
        "pilot_types": "pilotTypes",
        "job_types": "jobTypes",
        "tags": "tags",
        "banned_sites": "bannedSites",
    }
)
"""Attribute of a requirement -> the task parameter that says it."""

NO_SETS: Mapping[str, frozenset[str]] = MappingProxyType({})


class TaskRequirement(NamedTuple):
    """Whose jobs they are, and the attributes with several values that are not empty."""

    owner: str = ""
    owner_group: str = ""
    setup: str = ""
    sets: Mapping[str, frozenset[str]] = NO_SETS


def task_requirement(owner: str, owner_group: str, architecture: str, parameters: Mapping[str, Any]) -> TaskRequirement:
    """By the parameters of the task as they were submitted; the platform by its architecture, where that is a name."""
    sets = {attribute: listed_by_task(attribute, parameters) for attribute in PARAMETERS}
    sets["platforms"] = _platforms(architecture)
    given = {attribute: values for attribute, values in sets.items() if values}
    return TaskRequirement(owner, owner_group, parameters.get("setup") or "", MappingProxyType(given))


def listed_by_task(attribute: str, parameters: Mapping[str, Any]) -> frozenset[str]:
    """What the task's parameters list under an attribute of its requirement, as it is matched."""
    return listed(attribute, _listed(parameters.get(PARAMETERS[attribute])))


def of_job(task: TaskRequirement, need: Requirement) -> Requirement:
    """What a job of the task requires: its slot and queue, and what all jobs of the task do."""
    whole = need._replace(owner=task.owner, owner_group=task.owner_group, setup=task.setup)
    return with_sets(whole, task.sets)


def _listed(value: Any) -> Iterable[str]:
    return value.split(",") if isinstance(value, str) else value or ()


def _platforms(architecture: str) -> frozenset[str]:
    """The software platform that an architecture names; what a pattern means is compared with queues when they are chosen."""
    platform = parse_architecture(architecture).sw_platform
    return frozenset([platform]) if platform and Platform.of(platform).pattern is None else frozenset()
