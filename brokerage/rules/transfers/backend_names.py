"""The names of the backends that move files, for who checks a name: what is behind them is loaded later, and by others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

_names: list[Callable[[], Iterable[str]]] = []


def name_backends_with(names: Callable[[], Iterable[str]]) -> None:
    """Say who knows the backends that are there."""
    _names[:] = [names]


def no_backend(name: Any) -> str | None:
    """What is wrong with the name of a backend; None where it is one, or while nobody knows them."""
    if not _names or name in (known := sorted(_names[0]())):
        return None
    return f"there is no transfer backend {name!r}; there are {', '.join(known)}"
