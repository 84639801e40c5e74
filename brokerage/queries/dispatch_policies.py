"""Which dispatch policy hands out the jobs of a VO at a queue, by the configuration."""

from __future__ import annotations

from collections.abc import Iterator

from broker_site.foundation import gdpconfig
from broker_site.foundation.gdpconfig.values import Config, pick
from brokerage.rules.dispatch.dispatch_policy import (
    DISPATCH_POLICIES,
    DispatchPolicy,
    why_nothing_is_handed_out,
)

_OF_VO, _OF_QUEUE = "DISPATCH_POLICY", "DISPATCH_POLICY_<queue>"
_named_by: tuple[Config | None, dict[tuple[str, str], str]] = (None, {})
"""The names of the policies at queues for VOs, as they were found in a configuration."""


def policy_of(queue: str, vo: str) -> DispatchPolicy | None:
    """The dispatch policy for jobs of a VO at a queue; None where the one that is named is not there."""
    global _named_by
    config, names = _named_by
    if config is not (now := gdpconfig.current()):
        names = {}
        _named_by = now, names
    if (name := names.get((queue, vo))) is None:
        of_vo = now.component("dispatch", vo=vo)
        name = names[queue, vo] = pick(of_vo, _OF_QUEUE, queue=queue) or of_vo[_OF_VO]
    return DISPATCH_POLICIES.get(name)


def policy_fault(queue: str, vo: str) -> str:
    """Why there is none, in words, with the key that names it; empty where there is one."""
    config = gdpconfig.component("dispatch", vo=vo)
    if at_queue := pick(config, _OF_QUEUE, queue=queue):
        return why_nothing_is_handed_out(_OF_QUEUE.replace("<queue>", queue), at_queue)
    return why_nothing_is_handed_out(f"{_OF_VO} of VO {vo}", config[_OF_VO])


def by_group(vo: str) -> bool:
    """Whether jobs of a VO are handed out by the shares of groups, at whichever queue."""
    return any(policy.by_group for name in _named(vo) if (policy := DISPATCH_POLICIES.get(name)) is not None)


def _named(vo: str) -> Iterator[str]:
    """The policies that the configuration names for a VO, at all queues or at one."""
    for key, name in gdpconfig.component("dispatch", vo=vo).items():
        if name and (key == _OF_VO or key.startswith(f"{_OF_VO}_")):
            yield name
