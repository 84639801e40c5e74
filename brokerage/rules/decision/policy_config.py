"""Which policy decides and which configuration it reads, wherever that comes from: the database, or a document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from broker_site.foundation.gdpconfig.keys import APP, KEYS
from brokerage.rules.decision.declare import Policy
from brokerage.rules.decision.policy_choice import policy_chosen
from brokerage.rules.decision.record import config_of
from brokerage.rules.facts.ask import Ask
from workqueues.rules.jobs.activity import activity_of


class Component(Protocol):
    """Gives the keys of a component of the configuration."""

    def __call__(self, component: str, /, *, app: str) -> Mapping[str, Any]: ...


class ComponentOfVo(Protocol):
    """The same, as a VO has them."""

    def __call__(self, component: str, /, *, vo: str | None = None, app: str = APP) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The policies of a VO and the values that each of them reads; `edits`: values that stand for those of the same key.

    What was read once is kept: an object serves one cycle, or one question.
    """

    component: ComponentOfVo
    edits: Mapping[str, Any] = field(default_factory=dict)
    _values: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def policy(self, vo: str, activity: str) -> Policy:
        """The policy for an activity. Raises NoPolicy."""
        return policy_chosen(vo, activity, self.component("core", vo=vo))

    def job_broker(self, ask: Ask) -> Policy:
        """The policy that chooses queues for the jobs of a task. Raises NoPolicy."""
        return self.policy(ask.vo, activity_of(ask.prod_source_label))

    def values(self, policy: Policy, vo: str) -> dict[str, Any]:
        """Every key that the policy reads: what is decided with is what is stored."""
        if (policy.name, vo) not in self._values:
            keys = gathered(policy, partial(self.component, vo=vo)) | dict(self.edits)
            self._values[policy.name, vo] = config_of(policy, keys)
        return self._values[policy.name, vo]


def gathered(policy: Policy, component: Component) -> dict[str, Any]:
    """The keys of all components of a policy; of two with the same name that of the later component."""
    keys: dict[str, Any] = {}
    for place in policy.components:
        app, _, name = place.rpartition(":")
        keys |= component(name, app=app or APP)
    return keys


def component_of(policy: Policy, key: str) -> str:
    """The component, as policies name it, that has a key which the policy reads; empty where none has it."""
    for place in reversed(policy.components):
        app, _, component = place.rpartition(":")
        if any(declared.matches(key) for declared in KEYS if (declared.app, declared.component) == (app or APP, component)):
            return place
    return ""
