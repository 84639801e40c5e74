"""Which configuration a policy reads, wherever that comes from: the database, or a document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from broker_site.foundation.gdpconfig.keys import APP, KEYS
from brokerage.rules.decision.declare import Policy


class Component(Protocol):
    """Gives the keys of a component of the configuration."""

    def __call__(self, component: str, /, *, app: str) -> Mapping[str, Any]: ...


def gathered(policy: Policy, component: Component) -> dict[str, Any]:
    """The keys of all components of a policy; of two with the same name that of the later component."""
    found: dict[str, Any] = {}
    for place in policy.components:
        app, _, name = place.rpartition(":")
        found |= component(name, app=app or APP)
    return found


def component_of(policy: Policy, key: str) -> str:
    """The component, as policies name it, that has a key which the policy reads; empty where none has it."""
    for place in reversed(policy.components):
        app, _, component = place.rpartition(":")
        if any(known.matches(key) for known in KEYS if (known.app, known.component) == (app or APP, component)):
            return place
    return ""
