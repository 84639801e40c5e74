"""Whether a backend that the configuration names is there; who knows them tells at the start. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

_known: Callable[[], Collection[str]] | None = None


def know_backends_with(names: Callable[[], Collection[str]]) -> None:
    """`names` gives those that are there."""
    global _known
    _known = names


def no_backend(name: Any) -> str | None:
    """Why a name cannot be configured; None where it can."""
    known = _known() if _known else (name,)
    return None if name in known else f"there is no transfer backend {name!r}; there are {', '.join(sorted(known))}"
