"""One coherent set of configuration: the defaults in code and the overrides of one revision, resolved.

Here: which override wins, what is read where none is, and what is wrong with overrides that no longer fit. Pure: no Django.
Not here: where overrides come from (`reading`: the database) and who may change them (`store`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from broker_site.foundation.gdpconfig.keys import APP, KEYS, BadConfig, Key, Keys
from broker_site.foundation.kernel.verdict import Problem


class Row(NamedTuple):
    """One override as stored: `vo` empty = for all VOs, `value` the text."""

    app: str
    component: str
    name: str
    vo: str
    value: str


class Config:
    """What every key is worth at one revision: the override of exactly that VO, else the one for all VOs, else the default.

    An override that its key refuses (the range was narrowed, the key is gone) counts as not there and is named in `faults`.
    """

    def __init__(self, revision: int = 0, rows: Iterable[Row] = (), keys: Keys = KEYS) -> None:
        self.revision = revision
        self._keys = keys
        self._typed: dict[tuple[str, str, str], dict[str, dict[str, Any]]] = {}
        self._components: dict[tuple[str, str, str], Mapping[str, Any]] = {}
        self._values: dict[tuple[str, str, str, str | None], Any] = {}
        faults: list[tuple[Row, Problem]] = []
        for row in rows:
            try:
                values = {key.name: key.read(row.value) for key in keys.matching(row.component, row.name, row.app)}
            except BadConfig as bad:
                faults += [(row, problem) for problem in bad.problems]
            else:
                self._typed.setdefault(row[:3], {})[row.vo] = values
        self.faults = tuple(faults)

    def value(self, component: str, name: str, /, *, vo: str | None = None, app: str = APP, **parts: str) -> Any:
        """The typed value of a declared key, its parts filled in; None = unset. BadConfig for a key that nobody declared."""
        if parts:
            key, stored = self._keys.reading(component, name, app, **parts)
            return self._resolved(key, stored, vo)
        place = (app, component, name, vo)
        if place not in self._values:
            key, stored = self._keys.reading(component, name, app)
            self._values[place] = self._resolved(key, stored, vo)
        return self._values[place]

    def component(self, component: str, /, *, vo: str | None = None, app: str = APP) -> Mapping[str, Any]:
        """All keys of a component for pure rules: plain names with their values, overridden pattern names filled in with theirs.

        Each pattern also stands under its own name (`NQUEUELIMIT_<queue>`) with its default, for `pick`.
        """
        place = (app, component, vo or "")
        known = self._components.get(place)
        if known is None:
            known = self._components[place] = MappingProxyType(self._collected(component, vo, app))
        return known

    def text(self, component: str, stored: str, vo: str = "", app: str = APP) -> str:
        """What holds under a name as it is stored (parts filled in), as text; BadConfig where nobody declared it."""
        key = self._keys.matching(component, stored, app)[0]
        return key.write(self._resolved(key, stored, vo))

    def overridden(self, component: str, name: str, vo: str = "", app: str = APP) -> bool:
        """Whether a valid override is stored under this name for exactly this VO."""
        return vo in self._typed.get((app, component, name), {})

    def unknown(self) -> list[tuple[str, str, str]]:
        """Overrides that name what is not there now: component and key, VO (empty: all), and what is wrong in words."""
        return [
            (f"{component}.{stored}", vo, wrong)
            for (app, component, stored), by_vo in sorted(self._typed.items())
            for key in self._keys.matching(component, stored, app)
            for vo, values in sorted(by_vo.items())
            if key.known is not None and values.get(key.name) is not None and (wrong := key.known(values[key.name]))
        ]

    def _collected(self, component: str, vo: str | None, app: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key in self._keys:
            if (key.app, key.component) == (app, component):
                values[key.name] = key.default if key.parts else self._resolved(key, key.name, vo)
        for place in self._typed:
            if place[:2] == (app, component) and place[2] not in values:
                key = self._keys.matching(component, place[2], app)[0]
                if {vo or "", ""} & set(self._typed[place]):
                    values[place[2]] = self._resolved(key, place[2], vo)
        return values

    def _resolved(self, key: Key, stored: str, vo: str | None) -> Any:
        by_vo = self._typed.get((key.app, key.component, stored), {})
        values = by_vo.get(vo or "") or by_vo.get("")
        if not values or key.name not in values:
            return key.default
        value = values[key.name]
        return key.default if key.zero_is_unset and value in (0, "") else value


def pick(config: Mapping[str, Any], pattern: str, /, **parts: str) -> Any:
    """From a component's mapping: the value of a pattern with its parts filled in, else the pattern's default, else None.

    Pure rules use it: `pick(config, "MIN_WEIGHT_<label>_<gshare>", label="managed", gshare="MC 16")`.
    """
    stored = pattern
    for part, text in parts.items():
        stored = stored.replace(f"<{part}>", text)
    return config[stored] if stored in config else config.get(pattern)


def from_document(document: object, keys: Keys = KEYS) -> Config:
    """The configuration that a JSON document gives on top of the defaults, for decisions taken without a database.

    The document is {component: {key: value}}; a component of another app than `jedi` is written `app:component`. Numbers are
    seconds for durations and bytes for sizes. BadConfig names every unknown key and refused value.
    """
    rows: list[Row] = []
    problems: list[Problem] = []
    if not isinstance(document, Mapping):
        raise BadConfig(Problem("config", "form", "the configuration is not an object of components"))
    for place, entries in document.items():
        app, _, component = place.rpartition(":") if isinstance(place, str) else ("", "", repr(place))
        if not isinstance(entries, Mapping):
            problems.append(Problem(component, "form", f"component {component} is not an object of keys"))
            continue
        for name, value in entries.items():
            try:
                rows.append(Row(app or APP, component, str(name), "", keys.check(component, str(name), value, app=app or APP)))
            except BadConfig as bad:
                problems += [Problem(f"{component}.{name}", problem.rule, problem.message) for problem in bad.problems]
    if problems:
        raise BadConfig(*problems)
    return Config(rows=rows, keys=keys)
