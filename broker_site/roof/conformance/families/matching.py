"""Families of matching: classes of CPU time, task queues, what suits a resource, priorities from shares, choice by chance."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from broker_site.foundation.kernel.dice import dice
from broker_site.roof.conformance.registry import Answer, Given, Values, family
from brokerage.rules.dispatch.group_shares import QueueJobs, TimeSlice, corrected, queue_priorities
from brokerage.rules.dispatch.groups import JOB_SHARING, Group
from brokerage.rules.dispatch.random_choice import QueueChance, fresh, oldest, queues_in_turn, winning_priority
from brokerage.rules.dispatch.real_priority import real_priority
from brokerage.rules.dispatch.requirement import Requirement, fits
from brokerage.rules.dispatch.resource import Description, InvalidResource, described, listed
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
OFFERED = {
    "Site": "sites",
    "GridCE": "grid_ces",
    "Platform": "platforms",
    "PilotType": "pilot_types",
    "JobType": "job_types",
    "Tag": "tags",
    "Owner": "owners",
    "OwnerGroup": "owner_groups",
    "RequiredTag": "required_tags",
    "BannedSite": "banned_sites",
    "BannedGridCE": "banned_grid_ces",
    "BannedPlatform": "banned_platforms",
    "BannedJobType": "banned_job_types",
    "BannedTag": "banned_tags",
}
ATTRIBUTES = {**OFFERED, "Owner": "owner", "OwnerGroup": "owner_group", "Setup": "setup"}
NUMBERS = {"CPUTime": "cpu_time_s", "MaxRAM": "memory_mb", "NumberOfProcessors": "processors"}


@family("cpu_bucket", given="[cpu_segments] cpu_times", expect="bucket")
def cpu_bucket(given: Given) -> Answer:
    """The class of each CPU time."""
    limits = classes(given["cpu_segments"])
    return {"bucket": {str(time): cpu_class(time, limits) for time in given["cpu_times"]}}


@family("tq_group", given="jobs [cpu_segments]", expect="partition")
def tq_group(given: Given) -> Answer:
    """The jobs of each task queue."""
    task_queues = defaultdict(list)
    for name, job in given["jobs"].items():
        task_queues[key(_requirement(job, given["cpu_segments"]))].append(name)
    return {"partition": list(task_queues.values())}


@family("tq_match", given="queues resource [cpu_segments] [job_sharing_groups] [limits_hit]", expect="queues error")
def tq_match(given: Given) -> Answer:
    """The task queues that a resource may get a job of."""
    try:
        resource = described(_description(Values(given["resource"]), given["job_sharing_groups"] or ()))
    except InvalidResource:
        return {"error": True}
    hits = {ATTRIBUTES.get(name, name): frozenset(_list(values)) for name, values in (given["limits_hit"] or {}).items()}
    queues = {name: _requirement(queue, given["cpu_segments"]) for name, queue in given["queues"].items()}
    return {"queues": [name for name, requirement in queues.items() if fits(requirement, resource, hits)]}


def _requirement(job: Mapping[str, Any], cpu_segments: Sequence[int] | None) -> Requirement:
    given = Values(job)
    lists: dict[str, Any] = {ours: listed(ours, _list(given[theirs])) for theirs, ours in LISTS.items() if theirs in given}
    return Requirement(
        owner=given["Owner"] or "",
        owner_group=given["OwnerGroup"] or "",
        setup=given["Setup"] or "",
        memory_mb=given["MinRAM"] or 0,
        cpu_time_s=cpu_class(given["CPUTime"] or 0, classes(cpu_segments)),
        **lists,
    )


def _description(given: Given, sharing: Sequence[str]) -> Description:
    lists: dict[str, Any] = {ours: _list(given[theirs]) for theirs, ours in OFFERED.items()}
    return Description(
        sharing_groups=sharing,
        setup=given["Setup"] or "",
        whole_node=bool(given["WholeNode"]),
        **lists,
        **{ours: given[theirs] for theirs, ours in NUMBERS.items() if theirs in given},
    )


def _list(value: str | Sequence[str] | None) -> Sequence[str]:
    """One value or a list of them."""
    return [value] if isinstance(value, str) else value or []


@family("tq_priority", given="[group_share] [job_sharing] [allow_background] queues", expect="priority")
def tq_priority(given: Given) -> Answer:
    """The priority of each task queue of a group."""
    names = {"group_share": "share", "allow_background": "background"}
    group = Group(
        **{ours: given[theirs] for theirs, ours in names.items() if theirs in given},
        properties=(JOB_SHARING,) if given["job_sharing"] else (),
    )
    queues = {
        name: QueueJobs(
            queue["owner"], len(queue["real_priorities"]), sum(queue["real_priorities"]), queue.get("same_except_sites")
        )
        for name, queue in given["queues"].items()
    }
    return {"priority": queue_priorities(queues, group)}


@family("tq_choice", given="[highest_cpu_first] queues draws", expect="chosen")
def tq_choice(given: Given) -> Answer:
    """The task queue that comes first by given draws."""
    return {"chosen": next(queues_in_turn(_chances(given), given["draws"].__getitem__, **_rule(given)), None)}


@family("tq_choice", given="[highest_cpu_first] queues trials", expect="probability")
def tq_choice_by_dice(given: Given) -> Answer:
    """How often each of the task queues comes first."""
    queues, draw = _chances(given), fresh(dice("tq_choice", given["trials"], sorted(given["queues"])))
    won = Counter(next(queues_in_turn(queues, draw, **_rule(given))) for _ in range(given["trials"]))
    return {"probability": {name: won[name] / given["trials"] for name in queues}}


def _chances(given: Given) -> dict[str, QueueChance]:
    return {name: QueueChance(queue["cpu_bucket"], queue["priority"]) for name, queue in given["queues"].items()}


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
