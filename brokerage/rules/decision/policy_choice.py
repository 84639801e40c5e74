"""Which policy decides for a VO and an activity, and which generator makes the jobs: the one that is configured, else ours.

Here: the choice, what is known of the plugins that both may come from, and why one cannot be used. Not here: finding and
importing plugins (`brokerage.plugins`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from broker_site.foundation.kernel.registry import UnknownName
from brokerage.rules.decision.declare import POLICIES, Policy, policy_for
from brokerage.rules.facts.ask import Config
from workqueues.splitters.generation import STANDARD
from workqueues.splitters.generator import GENERATORS, JobGenerator

NUCLEUS = "nucleus"
ACTIVITIES = ("production", "analysis", "generic", NUCLEUS)
"""What the running system asks policies for; the key POLICY_<activity> of the component `core` names another policy for one."""


class Unusable(UnknownName):
    """What the configuration names cannot be used; the message is the reason that the tasks wait with."""


class NoPolicy(Unusable):
    """No policy can decide."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry point of an installed package: what it declared, or why it cannot be used (`fault`, empty where it can)."""

    package: str
    version: str
    entry_point: str
    target: str
    fault: str = ""
    policies: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()
    splitters: tuple[str, ...] = ()
    generators: tuple[str, ...] = ()
    post_processors: tuple[str, ...] = ()
    dispatch_policies: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"plugin {self.package} {self.version}, entry point {self.entry_point} = {self.target}"


PLUGINS: list[Plugin] = []
"""Those that were found when the process began, in the order in which they were loaded."""


def policy_chosen(vo: str, activity: str, core: Config) -> Policy:
    """The policy for an activity of a VO; `core`: the component `core` of the VO's configuration.

    A policy of a plugin decides only where the configuration names it: installing a package changes nothing by itself, and a
    package that broke makes tasks wait instead of going where other rules send them. Raises NoPolicy.
    """
    name = core.get(key_for(activity))
    if name is None:
        default = policy_for(vo, activity)
        return POLICIES[activity] if any(default.name in plugin.policies for plugin in PLUGINS) else default
    if wrong := unusable(activity, name):
        raise NoPolicy(f"{key_for(activity)} of VO {vo!r}: {wrong}")
    return POLICIES[name]


def policy_named(name: str) -> Policy:
    """The policy of that name. Raises NoPolicy."""
    if name not in POLICIES:
        raise NoPolicy(unknown("policy", name, POLICIES))
    return POLICIES[name]


def key_for(activity: str) -> str:
    """The configuration key that names the policy of an activity."""
    return f"POLICY_{activity}"


def unusable(activity: str, name: str) -> str | None:
    """Why the policy of that name cannot decide for an activity, with those that can; None where it can."""
    able = tuple(candidate for candidate, policy in POLICIES.items() if (policy.activity == NUCLEUS) == (activity == NUCLEUS))
    if name in able:
        return None
    if name in POLICIES:
        return f"{name!r} does not choose {'nuclei' if activity == NUCLEUS else 'queues'}; those that do: {', '.join(able)}"
    return unknown("policy", name, able)


def unusable_for(activity: str) -> Callable[[str], str | None]:
    """The same for one activity, as configuration keys ask it."""
    return partial(unusable, activity)


def unknown(kind: str, name: str, names: Iterable[str]) -> str:
    """That there is nothing of that name, what there is, and which plugins could not be loaded: one of them may bring it."""
    broken = [f"; the {plugin} could not be loaded: {plugin.fault}" for plugin in PLUGINS if plugin.fault]
    return f"there is no {kind} {name!r}; there are: {', '.join(names)}{''.join(broken)}"


class NoGenerator(Unusable):
    """No generator can make the jobs."""


def generator_chosen(vo: str, activity: str, core: Config) -> JobGenerator:
    """The generator for an activity of a VO; `core`: the component `core` of the VO's configuration. Raises NoGenerator."""
    name = core.get(generator_key(activity))
    if name is None:
        return STANDARD
    if wrong := unusable_generator(name):
        raise NoGenerator(f"{generator_key(activity)} of VO {vo!r}: {wrong}")
    return GENERATORS[name]


def generator_key(activity: str) -> str:
    """The configuration key that names the generator of an activity."""
    return f"GENERATOR_{activity}"


def unusable_generator(name: str) -> str | None:
    """Why no generator of that name can be used, with those that can; None where it can."""
    return None if name in GENERATORS else unknown("generator", name, GENERATORS)
