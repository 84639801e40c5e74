"""gdpconfig: typed, documented configuration per app, component and VO. Defaults in code, overrides in the database with history.

An app declares its keys in `config_keys.py`, as a `table` or with `declare(Key(...))`; agents and pages read with `value`,
`component`, `current`; who changes it writes with `apply`, `set_override`, `remove_override` and `revert`. Importing this package
needs no Django: parts that do are imported at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from broker_site.foundation.gdpconfig.keys import KEYS, BadConfig, Key, declare
from broker_site.foundation.gdpconfig.values import Config, from_document, pick

if TYPE_CHECKING:
    from broker_site.foundation.gdpconfig.reading import component, current, forget, revision, value
    from broker_site.foundation.gdpconfig.store import apply, preview, remove_override, revert, set_override

_ROOMS = {
    "reading": ("component", "current", "forget", "revision", "value"),
    "store": ("apply", "preview", "remove_override", "revert", "set_override"),
}


def __getattr__(name: str) -> Any:
    for room, names in _ROOMS.items():
        if name in names:
            globals()[name] = item = getattr(import_module(f"{__name__}.{room}"), name)
            return item
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
