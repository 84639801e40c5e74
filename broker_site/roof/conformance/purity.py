"""Whether a rule or a splitter of somebody reaches out of what it is given: by what its code names, and by what it does.

What it cannot see: a clock that is read through other packages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any

OUTSIDE = frozenset(
    {
        *("time", "random", "secrets", "uuid", "os", "io", "pathlib", "shutil", "tempfile", "socket", "subprocess", "threading"),
        *("urllib", "http", "requests", "logging", "sqlite3", "django", "rest_framework", "redis", "psycopg2", "celery"),
    }
)
"""Packages that a pure rule does not call."""

CLOCKS = frozenset({"now", "utcnow", "today"})
TOUCHING = ("open", "socket.", "subprocess.", "os.", "shutil.", "tempfile.", "sqlite3.", "urllib.", "time.sleep")
"""Audit events (or their beginnings) of what reaches out of the process."""


def reaching(function: Any) -> list[str]:
    """What a function, or one of its package that it calls, uses of the world outside, in order of names."""
    return sorted(set(_reaching(function, set())))


def _reaching(function: Any, seen: set[Any]) -> Iterator[str]:
    if not isinstance(function, FunctionType) or function in seen:
        return
    seen.add(function)
    package = function.__module__.partition(".")[0]
    for code in _codes(function.__code__):
        used = {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
        for name, value in used.items():
            module = value.__name__ if isinstance(value, ModuleType) else str(getattr(value, "__module__", None) or "")
            root = module.partition(".")[0]
            if root in OUTSIDE:
                yield name if isinstance(value, ModuleType) else f"{module}.{name}"
            elif root == "numpy" and "random" in code.co_names:
                yield f"{name}.random"
            elif root == "datetime" and (clocks := CLOCKS & set(code.co_names)):
                yield f"{name}.{min(clocks)}"
            elif root == package:
                yield from _reaching(value, seen)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


_touched: list[str] | None = None
_hooked = False


@contextmanager
def watched() -> Iterator[list[str]]:
    """What the block opens, connects to or runs, as Python's audit events tell it."""
    global _touched, _hooked
    if not _hooked:
        # A hook cannot be taken away again: it is made once, and looks away outside of the block.
        sys.addaudithook(_note)
        _hooked = True
    found: list[str] = []
    _touched = found
    try:
        yield found
    finally:
        _touched = None


def _note(event: str, given: tuple[Any, ...]) -> None:
    if _touched is not None and event.startswith(TOUCHING):
        _touched.append(f"{event} {given[0]!r}" if given else event)
