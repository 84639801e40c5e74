"""Families of matching: classes of CPU time, task queues, what suits a resource, priorities from shares, choice by chance."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from broker_site.foundation.kernel.dice import dice
from broker_site.roof.conformance.registry import Answer, Given, Values, family
from brokerage.rules.dispatch.group_shares import QueueJobs, TimeSlice, corrected, queue_priorities
from brokerage.rules.dispatch.groups import JOB_SHARING, Group
from brokerage.rules.dispatch.random_choice import QueueChance, fresh, oldest, queues_in_turn, winning_priority
from brokerage.rules.dispatch.real_priority import real_priority
from brokerage.rules.dispatch.requirement import Requirement, fits
from brokerage.rules.dispatch.resource import Description, InvalidResource, described, listed, names
from brokerage.rules.dispatch.task_queue_key import key
from brokerage.rules.facts.cpu_classes import classes, cpu_class

LISTS = {
    "Sites": "sites",
    "BannedSites": "banned_sites",
    "GridCEs": "grid_ces",
    "GridMiddlewares": "grid_middlewares",
    "JobTypes": "job_types",
    "PilotTypes": "pilot_types",
    "Platforms": "platforms",
    "LHCbPlatforms": "platforms",
    "SubmitPools": "submit_pools",
    "Tags": "tags",
}
"""Lists of a job; two of them are one attribute by its older and its newer name."""
OFFERED = {
    "Site": "sites",
    "GridCE": "grid_ces",
    "Platform": "platforms",
    "LHCbPlatform": "platforms",
    "PilotType": "pilot_types",
    "JobType": "job_types",
    "Tag": "tags",
    "Owner": "owners",
    "OwnerDN": "owners",
    "OwnerGroup": "owner_groups",
    "RequiredTag": "required_tags",
    "BannedSite": "banned_sites",
    "BannedGridCE": "banned_grid_ces",
    "BannedPlatform": "banned_platforms",
    "BannedLHCbPlatform": "banned_platforms",
    "BannedJobType": "banned_job_types",
    "BannedTag": "banned_tags",
}
LIMITED = {
    "Site": "sites",
    "GridCE": "grid_ces",
    "Platform": "platforms",
    "LHCbPlatform": "platforms",
    "PilotType": "pilot_types",
    "JobType": "job_types",
    "Tag": "tags",
    "Owner": "owner",
    "OwnerDN": "owner",
    "OwnerGroup": "owner_group",
    "Setup": "setup",
    "SubmitPool": "submit_pools",
    "GridMiddleware": "grid_middlewares",
}
"""Attributes that may be at a limit, as a resource names them. Others are no attribute of a job: they hold nothing back."""
NUMBERS = {"CPUTime": "cpu_time_s", "MaxRAM": "memory_mb", "NumberOfProcessors": "processors"}


@family("cpu_bucket", given="[cpu_segments] cpu_times", expect="bucket")
def cpu_bucket(given: Given) -> Answer:
    """The class of each CPU time."""
    limits = classes(_numbers(given["cpu_segments"]))
    return {"bucket": {str(time): cpu_class(_number(time), limits) for time in given["cpu_times"]}}


@family("tq_group", given="jobs [cpu_segments]", expect="partition")
def tq_group(given: Given) -> Answer:
    """The jobs of each task queue."""
    task_queues = defaultdict(list)
    for name, job in given["jobs"].items():
        task_queues[key(_requirement(job, given["cpu_segments"]))].append(name)
    return {"partition": list(task_queues.values())}


@family("tq_match", given="queues resource [cpu_segments] [job_sharing_groups] [limits_hit]", expect="queues error")
def tq_match(given: Given) -> Answer:
    """The task queues that a resource may get a job of; of several setups of a resource one is enough."""
    try:
        description = _description(Values(given["resource"]), given["job_sharing_groups"] or ())
        setups = _list(given["resource"].get("Setup")) or [""]
        resources = [described(replace(description, setup=setup)) for setup in setups]
    except InvalidResource:
        return {"error": True}
    hits = _lists(given["limits_hit"] or {}, LIMITED)
    at_limit = {attribute: names(values) for attribute, values in hits.items()}
    queues = {name: _requirement(queue, given["cpu_segments"]) for name, queue in given["queues"].items()}
    suit = [name for name, need in queues.items() if any(fits(need, resource, at_limit) for resource in resources)]
    return {"queues": suit}


def _requirement(job: Mapping[str, Any], cpu_segments: Sequence[int] | None) -> Requirement:
    given = Values(job)
    lists: dict[str, Any] = {ours: listed(ours, values) for ours, values in _lists(given, LISTS).items()}
    return Requirement(
        owner=_text(given["Owner"] or given["OwnerDN"]),
        owner_group=_text(given["OwnerGroup"]),
        setup=_text(given["Setup"]),
        memory_mb=_number(given["MinRAM"]),
        cpu_time_s=cpu_class(_number(given["CPUTime"]), classes(_numbers(cpu_segments))),
        **lists,
    )


def _description(given: Given, sharing: Sequence[str]) -> Description:
    lists: dict[str, Any] = _lists(given, OFFERED)
    numbers = {ours: _number(given[theirs]) for theirs, ours in NUMBERS.items() if _text(given[theirs])}
    whole = _text(given["WholeNode"]).lower() not in NO
    return Description(sharing_groups=sharing, whole_node=whole, **lists, **numbers)


NO = ("", "false", "no", "0")


def _lists(given: Mapping[str, Any], names_of: Mapping[str, str]) -> dict[str, list[str]]:
    """Our attributes with the values that are given under any of their names."""
    lists: dict[str, list[str]] = defaultdict(list)
    for theirs, ours in names_of.items():
        if theirs in given:
            lists[ours] += _list(given[theirs])
    return lists


def _list(value: object) -> list[str]:
    """One value or a list of them, as texts."""
    if value is None:
        return []
    return [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]


def _text(value: object) -> str:
    """One value, or the first of a list, without blanks around it; empty where there is none."""
    return next(iter(_list(value)), "").strip()


def _number(value: Any) -> Any:
    """A number, given as such or as a text; 0 where there is none. Raises InvalidResource for another text."""
    if not isinstance(value, str):
        return value or 0
    try:
        return float(value) if "." in value else int(value or "0")
    except ValueError:
        raise InvalidResource("number", f"not a number: {value}") from None


def _numbers(values: Sequence[Any] | None) -> list[int]:
    return [_number(value) for value in values or ()]


@family("tq_priority", given="[group_share] [job_sharing] [allow_background] queues", expect="priority")
def tq_priority(given: Given) -> Answer:
    """The priority of each task queue of a group."""
    names = {"group_share": "share", "allow_background": "background"}
    group = Group(
        **{ours: given[theirs] for theirs, ours in names.items() if theirs in given},
        properties=(JOB_SHARING,) if given["job_sharing"] else (),
    )
    queues = {
        name: QueueJobs(queue["owner"], len(queue["real_priorities"]), sum(queue["real_priorities"]), _alike(name, queue))
        for name, queue in given["queues"].items()
    }
    return {"priority": queue_priorities(queues, group)}


def _alike(name: str, queue: Mapping[str, Any]) -> Hashable:
    """The label of all else in its key; one that has none is like no other."""
    label: Hashable = queue.get("same_except_sites")
    return (name,) if label is None else label


@family("tq_choice", given="[highest_cpu_first] queues [draws]", expect="chosen")
def tq_choice(given: Given) -> Answer:
    """The task queue that comes first by given draws; null where there is none."""
    draws = given["draws"] or {}
    return {"chosen": next(queues_in_turn(_chances(given), draws.__getitem__, **_rule(given)), None)}


@family("tq_choice", given="[highest_cpu_first] queues trials", expect="probability chosen")
def tq_choice_by_dice(given: Given) -> Answer:
    """How often each of the task queues comes first; `chosen`: null where there is none that could."""
    queues, draw = _chances(given), fresh(dice("tq_choice", given["trials"], sorted(given["queues"])))
    if not queues:
        return {"probability": {}, "chosen": None}
    won = Counter(next(queues_in_turn(queues, draw, **_rule(given))) for _ in range(given["trials"]))
    return {"probability": {name: won[name] / given["trials"] for name in queues}}


def _chances(given: Given) -> dict[str, QueueChance]:
    return {name: QueueChance(_number(queue.get("cpu_bucket")), queue["priority"]) for name, queue in given["queues"].items()}


def _rule(given: Given) -> dict[str, bool]:
    return {name: given[name] for name in ("highest_cpu_first",) if name in given}


@family("job_choice", given="[window] jobs draws [real_priority]", expect="winning_priority candidates")
def job_choice(given: Given) -> Answer:
    """The user priority that wins by given draws, and the jobs of which one is then taken."""
    jobs = given["jobs"]
    winner = winning_priority(
        jobs, given["draws"].__getitem__, **({"real": given["real_priority"]} if "real_priority" in given else {})
    )
    window = (int(job) for job, priority in jobs.items() if priority == winner)
    candidates = oldest(window, given["window"]) if "window" in given else oldest(window)
    return {"winning_priority": winner, "candidates": [str(job) for job in candidates]}


@family("real_priority", given="user_priorities", expect="real_priority")
def weight_of_user_priority(given: Given) -> Answer:
    """What each user priority weighs."""
    return {"real_priority": {str(priority): real_priority(priority) for priority in given["user_priorities"]}}


@family("share_correction", given="shares [global_max] slices", expect="shares")
def share_correction(given: Given) -> Answer:
    """The shares after correction by what was used."""
    slices = [
        TimeSlice(**{ours: each[theirs] for theirs, ours in SLICE.items() if each.get(theirs) is not None})
        for each in given["slices"]
    ]
    most = {"most": given["global_max"]} if "global_max" in given else {}
    return {"shares": corrected(given["shares"], slices, **most)}


SLICE = {"usage": "usage", "weight": "weight", "max": "most"}
