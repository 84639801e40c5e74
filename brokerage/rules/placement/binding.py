"""When jobs get their queue (row X4, decision H7): early, late, or early and open to others after a time; and what of it a task
cannot have. Not here: the jobs that are placed so (`brokerage.rules.placement.open_jobs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from broker_site.foundation.gdpconfig.values import pick
from brokerage.rules.facts.ask import Config

Mode = Literal["early", "late", "late_after"]


class Binding(NamedTuple):
    """How the jobs of a task are bound. `after_s`: with late_after, seconds that one waits at its queue before others may have
    it. `why_early`: why they are bound early where something else was wished for; empty where nothing hinders it.
    """

    mode: Mode = "early"
    after_s: int = 0
    why_early: str = ""

    @property
    def is_late(self) -> bool:
        """Whether jobs are, or become, open to several queues."""
        return self.mode != "early" and not self.why_early


EARLY = Binding()
VARYING_CORES = "its jobs have as many cores as the slots of their queue"
ONE_PLACE = "the task names the one place where it runs"
WRITTEN_FOR_QUEUE = "its generator writes the parameters of a job for its queue"


def binding_of(
    parameters: Mapping[str, Any], activity: str, core_count: int | None, config: Config, *, writes_parameters: bool = False
) -> Binding:
    """By the parameters of the task, else by the keys BINDING of its VO and activity. `config`: component dispatch."""
    mode = parameters.get("binding") or pick(config, "BINDING_<activity>", activity=activity) or config["BINDING"]
    if mode == "early":
        return EARLY
    after_s = int(parameters.get("bindingAfter") or config["BINDING_AFTER"]) if mode == "late_after" else 0
    return Binding(cast("Mode", mode), after_s, _hindrance(parameters, core_count, writes_parameters))


def _hindrance(parameters: Mapping[str, Any], core_count: int | None, writes_parameters: bool) -> str:
    """Why each job of the task needs its queue from the start; empty where none does."""
    if core_count == 0:
        return VARYING_CORES
    site = str(parameters.get("site") or "").strip(", ")
    if site and "," not in site:
        return ONE_PLACE
    return WRITTEN_FOR_QUEUE if writes_parameters else ""


def told(binding: Binding, after: str) -> str:
    """How its jobs get their queue, as a sentence; `after` says how long they wait first."""
    if binding.mode == "early":
        return "Its jobs get their queue when they are made."
    if binding.why_early:
        wished = "late" if binding.mode == "late" else f"early, and open after {after}"
        return f"Its jobs were to be bound {wished}; they get their queue when they are made, as {binding.why_early}."
    if binding.mode == "late":
        return (
            "Its jobs get their queue when a pilot takes them: any queue that may run them and has their input. While these are"
            " full, other queues get jobs to which input is brought."
        )
    return f"Its jobs get their queue when they are made; those that wait for {after} are open to all that may run them."


NAMED = 5
"""Queues of an open job that are named."""


def any_of(queues: Sequence[str]) -> str:
    """The queues to which a job is open, in words."""
    more = f" and {len(queues) - NAMED} more" if len(queues) > NAMED else ""
    return f"any of {len(queues)} queues: {', '.join(queues[:NAMED])}{more}"


def spread(n: int, k: int, turn: int) -> list[int]:
    """`n` open jobs over their `k` queues, in whole jobs: 1/k of them at each (decision H7). `turn` says who has the odd ones.

    Of several calls for jobs that belong together the turn goes on by `n`, else the odd ones would all be for the same queue.
    """
    each, odd = divmod(n, k)
    return [each + ((place - turn) % k < odd) for place in range(k)]
