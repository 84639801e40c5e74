"""The further switches of a queue: `params`, and `catchall` as `key` or `key=value` in a comma list (facts on queues 5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Switches:
    """What is switched on at a queue; names are compared whole, `params` come before `catchall`."""

    def __init__(self, catchall: str, params: Mapping[str, Any] | None = None) -> None:
        parts = (item.partition("=") for item in catchall.split(","))
        self._found: dict[str, Any] = {name.strip(): value.strip() or True for name, _, value in parts if name.strip()}
        self._found |= dict(params or {})

    def on(self, name: str) -> bool:
        """Whether the switch is there and not off."""
        return str(self._found.get(name, "")).lower() not in ("", "false", "0", "none")

    def text(self, name: str) -> str:
        """The value of a switch, empty where it is not there or has none."""
        value = self._found.get(name)
        return "" if value is None or isinstance(value, bool) else str(value)

    def number(self, name: str) -> float:
        """The value of a switch as a number; 0 where it is not there or is none."""
        try:
            return float(self.text(name) or 0)
        except ValueError:
            return 0.0
