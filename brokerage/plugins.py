"""What other packages bring (policies, filters, weights, splitters, generators, post-processors, dispatch policies): found by
entry point, loaded once when a process begins.

A package names a module of its own under the group `gridbroker.brokerage`; importing that module declares what it brings, with
the decorators that ours use. One that cannot be loaded is left out as a whole, is told by the log and by `manage.py check`, and
keeps no other from being loaded. Not here: which policy and generator are used (`brokerage.rules.decision.policy_choice`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import EntryPoint, entry_points
from itertools import chain
from typing import Any

from django.core import checks
from django.db import DatabaseError

import brokerage.config_keys
import brokerage.policies  # noqa: F401 - ours are declared first, so that no plugin can take their names
from broker_site.foundation import gdpconfig
from broker_site.foundation.gdpconfig.keys import APP, KEYS
from broker_site.foundation.kernel.registry import Registry
from brokerage.rules.decision.declare import FILTERS, POLICIES, WEIGHTS, Policy
from brokerage.rules.decision.policy_choice import PLUGINS, Plugin
from brokerage.rules.dispatch.dispatch_policy import DISPATCH_POLICIES
from workqueues.rules.jobs.post_processors import POST_PROCESSORS
from workqueues.splitters.choice import SPLITTERS
from workqueues.splitters.generator import GENERATORS

GROUP = "gridbroker.brokerage"

BROUGHT: tuple[Registry[Any], ...] = (POLICIES, FILTERS, WEIGHTS, SPLITTERS, GENERATORS, POST_PROCESSORS, DISPATCH_POLICIES)
"""What a plugin may declare, in the order in which `Plugin` tells it."""

log = logging.getLogger(__name__)

_loaded = False


class BadPlugin(Exception):
    """What a plugin declared cannot work; the message says what."""


def load_plugins() -> None:
    """Load the plugins of all installed packages, unless that is done: PLUGINS tells the result."""
    global _loaded
    if not _loaded:
        _loaded = True
        PLUGINS.extend(load(entry_points(group=GROUP)))


def load(points: Iterable[EntryPoint]) -> list[Plugin]:
    """Import what the entry points name, in the order of packages and names."""
    return [_load(point) for point in sorted(points, key=lambda point: (_package(point)[0], point.name))]


def _load(point: EntryPoint) -> Plugin:
    package, version = _package(point)
    before = _names()
    try:
        with declaring():
            point.load()
            for name in POLICIES:
                if name not in before[0]:
                    _check_policy(POLICIES[name])
    except (Exception, SystemExit) as error:
        # A module of somebody else may raise anything: it is told, and left out.
        plugin = Plugin(package, version, point.name, point.value, fault=f"{type(error).__name__}: {error}")
        log.error("%s could not be loaded: %s", plugin, plugin.fault, exc_info=error)
        return plugin
    new = [names[len(earlier) :] for names, earlier in zip(_names(), before, strict=True)]
    plugin = Plugin(package, version, point.name, point.value, "", *new)
    log.debug("%s brings %s", plugin, ", ".join(chain.from_iterable(new)) or "nothing")
    return plugin


@contextmanager
def declaring() -> Iterator[None]:
    """Keep what is declared in the block, of every kind, only if it ends without an exception."""
    with ExitStack() as stack:
        for registry in BROUGHT:
            stack.enter_context(registry.all_or_nothing())
        stack.enter_context(KEYS.all_or_nothing())
        yield


def _names() -> tuple[tuple[str, ...], ...]:
    """What is declared so far, of each kind."""
    return tuple(map(tuple, BROUGHT))


def _package(point: EntryPoint) -> tuple[str, str]:
    return (point.dist.name, point.dist.version) if point.dist else ("of no package", "")


def _check_policy(policy: Policy) -> None:
    """Raise BadPlugin for a policy that would fail at its first decision: a key that no component of it has."""
    places = {(app or APP, component) for app, _, component in (place.rpartition(":") for place in policy.components)}
    declared = {key.name for key in KEYS if (key.app, key.component) in places}
    if unknown := [key for key in policy.keys if key not in declared]:
        raise BadPlugin(
            f"the policy {policy.name} reads {', '.join(unknown)}, which no component of it declares"
            f" ({', '.join(policy.components)})"
        )


def check_plugins(app_configs: Any = None, **kwargs: Any) -> list[checks.CheckMessage]:
    """System check brokerage.W001: a plugin that cannot be used. The rest of the system goes on without it."""
    hint = "Mend or remove the package. Tasks for which the configuration names a policy or generator of it wait."
    return [
        checks.Warning(f"{plugin} could not be loaded: {plugin.fault}", hint=hint, id="brokerage.W001")
        for plugin in PLUGINS
        if plugin.fault
    ]


def check_named(app_configs: Any = None, databases: Any = None, **kwargs: Any) -> list[checks.CheckMessage]:
    """System check brokerage.W002 of `check --database`: the configuration names what is not there."""
    if not databases:
        return []
    hint = "Install the package or import the site that is named, or set the key anew. What a policy or generator is to choose "
    hint += "waits meanwhile; limits of a site that is not there hold nothing."
    try:
        found = gdpconfig.current().unknown()
    except DatabaseError:
        return [checks.Info("The database does not answer: the configuration was not looked at.", id="brokerage.I002")]
    named = [(f"{key} of VO {vo}" if vo else key, wrong) for key, vo, wrong in found]
    return [checks.Warning(f"{key}: {wrong}", hint=hint, id="brokerage.W002") for key, wrong in named]
