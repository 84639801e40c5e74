"""What a configuration key is, and the registry of the keys that the apps declare.

Here: `Key`, `declare`, names with parts filled in at run time, and the checks of what somebody wants to set. Pure: no Django.
Not here: how texts are written (`texts`), which overrides exist (`values`, `reading`), the declarations (`config_keys`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, cast

from broker_site.foundation.gdpconfig.texts import KINDS, UNSET, InvalidText, plain, thawed
from broker_site.foundation.kernel.registry import Registry, nearest
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import OutsideDataError

Type = Literal["int", "float", "bool", "str", "enum", "duration", "size", "json", "list"]

APP: Final = "jedi"
MAX_NAME: Final = 128
MAX_VO: Final = 32

_PART = re.compile(r"<([A-Za-z][A-Za-z0-9_]*)>")
_DECLARED = re.compile(r"(?:[A-Za-z0-9_.\-]|<[A-Za-z][A-Za-z0-9_]*>)+")
_VO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:\-]*")
_RESERVED_PARTS = frozenset({"app", "vo"})


class BadConfig(OutsideDataError):
    """What somebody wants to set or to read is refused; `problems` has each reason, and each message names its key."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(problems)
        self.args = ("; ".join(problem.message for problem in self.problems),)


@dataclass(frozen=True, kw_only=True, eq=False)
class Key:
    """One thing that can be configured.

    name: as it is stored; parts in angle brackets (`HEARTBEAT_TIMEOUT_<workflow>`) are filled in where it is read.
    default: what holds without an override; None = unset, and then the text `unset` may be set too. Seconds for durations (or a
    text such as "2h"), bytes for sizes (or a text such as "10GB").
    low, high: inclusive bounds of a number, or of the length of a text or list.
    choices: the words of an enum, or those allowed in a list.
    zero_is_unset: 0, false and the empty text mean the default, as PanDA's callers read this key.
    check: further rule over the typed value (JSON as plain dictionaries and lists); returns what is wrong, or None.
    known: the same for who sets a value, not for who reads it: what the value names may be there today and gone tomorrow, and
    then its reader says so.
    """

    component: str
    name: str
    type: Type
    default: Any
    doc: str
    unit: str = ""
    low: float | str | None = None
    high: float | str | None = None
    choices: tuple[str, ...] = ()
    app: str = APP
    source: str = ""
    zero_is_unset: bool = False
    check: Callable[[Any], str | None] | None = None
    known: Callable[[Any], str | None] | None = None

    def __post_init__(self) -> None:
        if not (_DECLARED.fullmatch(self.name) and self.component and self.app and self.doc.strip()):
            raise ValueError(f"key {self.component}.{self.name}: a name, component, app and documentation are needed")
        if len(set(self.parts)) != len(self.parts) or _RESERVED_PARTS & set(self.parts):
            raise ValueError(f"key {self}: parts must differ and cannot be called {sorted(_RESERVED_PARTS)}")
        if (self.type == "enum") != bool(self.choices) and self.type != "list":
            raise ValueError(f"key {self}: choices belong to an enum (and can limit a list)")
        if self.type in ("bool", "enum", "json") and (self.low, self.high) != (None, None):
            raise ValueError(f"key {self}: a {self.type} has no range")
        kind = KINDS[self.type]
        for bound in ("low", "high"):
            limit = getattr(self, bound)
            if limit is not None and self.type not in ("str", "list"):
                object.__setattr__(self, bound, kind.read(limit) if isinstance(limit, str) else kind.accept(limit))
        if self.default is not None:
            object.__setattr__(self, "default", self.accept(self.default))

    def __str__(self) -> str:
        return f"{self.component}.{self.name}" if self.app == APP else f"{self.app}:{self.component}.{self.name}"

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The names of the parts that are filled in at run time; empty for a plain key."""
        return tuple(_PART.findall(self.name))

    @cached_property
    def literal(self) -> str:
        """The name without its parts; the longer it is, the more specific the pattern."""
        return _PART.sub("", self.name)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("".join(".+" if _PART.fullmatch(bit) else re.escape(bit) for bit in re.split(r"(<[^>]+>)", self.name)))

    def matches(self, name: str) -> bool:
        """Whether `name` is this key with its parts filled in (for a plain key: is its name)."""
        return bool(self._pattern.fullmatch(name)) and not _PART.search(name)

    def fill(self, **parts: str) -> str:
        """The stored name with each part replaced, blanks inside kept; BadConfig for a missing, extra or unusable part."""
        if set(parts) != set(self.parts):
            wanted = ", ".join(self.parts) or "none"
            raise BadConfig(Problem("key", "parts", f"{self}: parts needed are {wanted}; given are {', '.join(parts) or 'none'}"))
        for part, text in parts.items():
            if not text or text != text.strip() or not text.isprintable():
                raise BadConfig(Problem(part, "part", f"{self}: {text!r} cannot stand for <{part}>"))
        return _PART.sub(lambda match: parts[match[1]], self.name)

    def read(self, text: str) -> Any:
        """The typed value that `text` says; BadConfig (type, range, choice or rule of the key) where it says none."""
        try:
            text = plain(text)
            if self.default is None and text == UNSET:
                return None
            return self._checked(KINDS[self.type].read(text))
        except InvalidText as nonsense:
            raise self._bad("type", f"{nonsense}") from None

    def accept(self, value: object) -> Any:
        """The typed value of a Python or JSON value: texts are read, numbers are seconds for durations and bytes for sizes."""
        if value is None and getattr(self, "default", None) is None:
            return None
        if isinstance(value, str):
            return self.read(value)
        try:
            return self._checked(KINDS[self.type].accept(value))
        except InvalidText as nonsense:
            raise self._bad("type", f"{nonsense}") from None

    def accept_new(self, value: object) -> Any:
        """The same for a value that somebody sets."""
        typed = self.accept(value)
        if typed is not None and self.known is not None and (wrong := self.known(typed)):
            raise self._bad("known", wrong)
        return typed

    def write(self, value: Any) -> str:
        """The text of a typed value; `read` gives the value back."""
        return UNSET if value is None else KINDS[self.type].write(value)

    @property
    def bounds(self) -> str:
        """The range, choices or form of a value in words, for pages and messages."""
        if self.choices and self.type == "enum":
            return "one of " + ", ".join(self.choices)
        of = f"{'number of items' if self.type == 'list' else 'length'} " if self.type in ("str", "list") else ""
        low, high = self._bound(self.low), self._bound(self.high)
        if low and high:
            return f"{of}from {low} to {high}"
        if low or high:
            return f"{of}at least {low}" if low else f"{of}at most {high}"
        return KINDS[self.type].form

    def _bound(self, bound: Any) -> str:
        if bound is None:
            return ""
        if self.type in ("duration", "size"):
            return KINDS[self.type].write(bound)
        return str(int(bound) if float(bound).is_integer() and abs(bound) < 1e15 else bound)

    def _checked(self, value: Any) -> Any:
        if value is None and getattr(self, "default", None) is not None:
            raise self._bad("type", "null is no value of this key; remove the override to have the default again")
        words = (value,) if self.type == "enum" else value if self.type == "list" and self.choices else ()
        for word in words:
            if word not in self.choices:
                near = nearest(word, self.choices)
                hint = f"; did you mean {near}?" if near else ""
                raise self._bad("choice", f"{word!r} is not one of {', '.join(self.choices)}{hint}")
        measure = len(value) if self.type in ("str", "list") else value
        low, high = cast("Any", self.low), cast("Any", self.high)
        if (low is not None and measure < low) or (high is not None and measure > high):
            raise self._bad("range", f"{self.write(value)} is out of range: {self.bounds}")
        if self.check is not None and (wrong := self.check(thawed(value) if self.type == "json" else value)):
            raise self._bad("rule", wrong)
        return value

    def _bad(self, rule: str, message: str) -> BadConfig:
        return BadConfig(Problem("value", rule, f"{self.name}: {message}"))


class Keys:
    """The keys that the apps declared, by (app, component, name)."""

    def __init__(self) -> None:
        self._registry: Registry[Key] = Registry("configuration key")

    def __iter__(self) -> Iterator[Key]:
        return iter(self._registry.values())

    def declare(self, *keys: Key) -> None:
        """Add keys; ValueError if one of that app, component and name is there."""
        for key in keys:
            self._registry.add(_full(key.app, key.component, key.name), key)

    def all_or_nothing(self) -> AbstractContextManager[None]:
        """Keep what the block declares only if it ends without an exception."""
        return self._registry.all_or_nothing()

    def get(self, component: str, name: str, app: str = APP) -> Key:
        """The key declared under exactly this name, pattern or plain; BadConfig with the nearest known key."""
        key = self._declared(component, name, app)
        if key is None:
            raise BadConfig(self._unknown(component, name, app))
        return key

    def matching(self, component: str, name: str, app: str = APP) -> tuple[Key, ...]:
        """The keys that a stored `name` belongs to: the plain one alone, else every pattern that fits, most specific first.

        BadConfig with the nearest known key where nothing fits.
        """
        exact = self._declared(component, name, app)
        if exact is not None and not exact.parts:
            return (exact,)
        here = [key for key in self if key.app == app and key.component == component]
        fitting = sorted((key for key in here if key.parts and key.matches(name)), key=lambda key: (-len(key.literal), key.name))
        if not fitting:
            raise BadConfig(self._unknown(component, name, app))
        return tuple(fitting)

    def reading(self, component: str, name: str, app: str = APP, **parts: str) -> tuple[Key, str]:
        """The key that rules a reading and the stored name: a plain declaration of the filled-in name wins over the pattern."""
        key = self.get(component, name, app)
        if not parts and not key.parts:
            return key, name
        stored = key.fill(**parts)
        return self._declared(component, stored, app) or key, stored

    def check(self, component: str, name: str, value: object, vo: str = "", app: str = APP) -> str:
        """The text to store for an override; BadConfig with every problem of key, VO and value."""
        problems: list[Problem] = []
        if len(name) > MAX_NAME or not name.isprintable() or name != name.strip():
            problems.append(
                Problem("key", "name", f"{name[:40]!r} is no name of a key (at most {MAX_NAME} printable characters)")
            )
        if vo and (len(vo) > MAX_VO or not _VO.fullmatch(vo)):
            problems.append(Problem("vo", "vo", f"{vo[:40]!r} is no name of a VO (at most {MAX_VO} letters, digits and . _ : -)"))
        text = ""
        try:
            fitting = self.matching(component, name, app)
            text = fitting[0].write(fitting[0].accept_new(value))
            for key in fitting:  # the first too: the text of a JSON value may be longer than any that is read
                key.read(text)
        except BadConfig as bad:
            problems += bad.problems
        if problems:
            raise BadConfig(*problems)
        return text

    def _declared(self, component: str, name: str, app: str) -> Key | None:
        full = _full(app, component, name)
        # Asked at every reading: `get` of a name that the registry lacks would look for similar names, which is slow.
        return self._registry[full] if full in self._registry else None  # noqa: SIM401

    def _unknown(self, component: str, name: str, app: str) -> Problem:
        """The refusal of a name that nobody declared: same name elsewhere first, then the one that is most like it."""
        if (pattern := self._declared(component, name, app)) is not None:
            hint = f"; fill in {' and '.join(f'<{part}>' for part in pattern.parts)}"
        elif elsewhere := [str(key) for key in self if key.name == name or (key.parts and key.matches(name))]:
            hint = f"; it is a key of {' and of '.join(elsewhere)}"
        else:
            names = {key.name: str(key) for key in self}
            names |= {key.name: key.name for key in self if (key.app, key.component) == (app, component)}
            near = min((known for known in names if known.startswith(name)), key=len, default="") or nearest(name, names)
            hint = f"; did you mean {names[near]}?" if near else ""
        return Problem("key", "unknown_key", f"unknown configuration key {component}.{name[:MAX_NAME]} of app {app}{hint}")


def _full(app: str, component: str, name: str) -> str:
    return f"{app}\x1f{component}\x1f{name}"


KEYS: Final = Keys()


def declare(*keys: Key) -> None:
    """Add keys to those of this process: called by `config_keys` of each app when it is imported."""
    KEYS.declare(*keys)
