"""Which generator makes the jobs of a VO and an activity: the one that the configuration names, else ours.

It is chosen as the policy is (`brokerage.rules.decision.policy_choice`), by the keys GENERATOR_<activity> of the component
`core`.
"""

from __future__ import annotations

from brokerage.rules.decision.policy_choice import Unusable, unknown
from brokerage.rules.facts.ask import Config
from workqueues.splitters.generation import STANDARD
from workqueues.splitters.generator import GENERATORS, JobGenerator


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
