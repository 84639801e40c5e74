"""Which backend moves the files of a VO: the key TRANSFER_BACKEND, and what other packages bring.

A package names a module, or a function without arguments, under the entry point group `gridbroker.transfers`; loading it declares
its backend with `declare_backend`. One that cannot be loaded is told by the log; transfers of VOs that want it wait.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points

from broker_site.foundation import gdpconfig
from broker_site.foundation.kernel.registry import Registry
from brokerage.transfers.local import Local
from brokerage.transfers.port import Backend

GROUP = "gridbroker.transfers"

BACKENDS: Registry[Backend] = Registry("transfer backend")

log = logging.getLogger(__name__)

_loaded = False


class NoBackend(LookupError):
    """No backend of the configured name is there."""


def declare_backend(backend: Backend) -> None:
    """Make a backend known by its name."""
    BACKENDS.add(backend.name, backend)


declare_backend(Local())


def backends() -> dict[str, Backend]:
    """All that are there, by name."""
    load_backends(lambda: entry_points(group=GROUP))
    return {name: BACKENDS[name] for name in BACKENDS}


def backend_of(vo: str) -> Backend:
    """The backend that moves the files of a VO. Raises NoBackend."""
    name = str(gdpconfig.value("transfers", "TRANSFER_BACKEND", vo=vo))
    known = backends()
    if name not in known:
        raise NoBackend(f"no transfer backend is called {name}; there are {', '.join(sorted(known))}")
    return known[name]


def load_backends(points: Callable[[], Iterable[EntryPoint]]) -> None:
    """Declare those of installed packages, once in a process; ours is there from the beginning."""
    global _loaded
    if _loaded:
        return
    _loaded = True
    for point in sorted(points(), key=lambda point: point.name):
        load_backend(point)


def load_backend(point: EntryPoint) -> None:
    """Declare what one entry point brings; one that fails declares nothing and is told by the log."""
    try:
        with BACKENDS.all_or_nothing():
            brought = point.load()
            if callable(brought):
                brought()
    except (Exception, SystemExit) as error:  # a module of somebody else may raise anything
        log.error("the transfer backend %s (%s) could not be loaded: %s", point.name, point.value, error, exc_info=error)
