"""gdpconfig: typed, documented configuration per app, component and VO. Defaults in code, overrides in the database with history.

An app declares its keys in `config_keys.py`, as a `table` or with `declare(Key(...))`; agents and pages read with `value`,
`component`, `current`; the admin and commands write with `set_override`, `remove_override` and `revert`. Importing this package
needs no Django: parts that do are imported at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from broker_site.foundation.gdpconfig.keys import KEYS, BadConfig, Key, declare
from broker_site.foundation.gdpconfig.values import Config, from_document, pick

if TYPE_CHECKING:
    from broker_site.foundation.gdpconfig.listing import effective
    from broker_site.foundation.gdpconfig.reading import component, current, forget, revision, value
    from broker_site.foundation.gdpconfig.store import remove_override, revert, set_override

__all__ = [
    "KEYS",
    "BadConfig",
    "Config",
    "Key",
    "component",
    "current",
    "declare",
    "effective",
    "forget",
    "from_document",
    "pick",
    "remove_override",
    "revert",
    "revision",
    "set_override",
    "value",
]

_ROOMS = {
    "component": "reading",
    "current": "reading",
    "effective": "listing",
    "forget": "reading",
    "remove_override": "store",
    "revert": "store",
    "revision": "reading",
    "set_override": "store",
    "value": "reading",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
    globals()[name] = found
    return found
