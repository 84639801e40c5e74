"""What a draft would lead to: the values that hold before and after it, line by line. Only read, nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from broker_site.foundation.gdpconfig import keys
from broker_site.foundation.gdpconfig.changesets import CONFIG, Place, Step, in_words
from broker_site.foundation.gdpconfig.keys import BadConfig
from broker_site.foundation.gdpconfig.models import Override, Revision
from broker_site.foundation.gdpconfig.values import Config, Row

NOT_DECLARED = ""
"""The value of a key that nobody declared."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One line of a draft: the override before and after (None: none), and the value that holds then, as text.

    Of a line for all VOs that is the value of VOs without an override of their own; of a row it is the row.
    """

    place: Place
    before: str | None
    until_before: datetime | None
    after: str | None
    until: datetime | None
    effective_before: str
    effective_after: str
    differs: bool

    @property
    def words(self) -> str:
        """What it changes, short."""
        return in_words(self.place.kind, self.before, self.after)

    @property
    def unit(self) -> str:
        """What the values that hold are counted in; empty where nothing is counted."""
        if self.place.kind != CONFIG:
            return ""
        try:
            return keys.KEYS.matching(self.place.component, self.place.name, self.place.app)[0].unit
        except BadConfig:
            return ""


@dataclass(frozen=True, slots=True)
class Effects:
    """The lines with what they lead to, and the configuration before and after them; `revision`: the newest when it was read."""

    revision: int
    lines: tuple[Effect, ...]
    before: Config
    after: Config

    @property
    def of_keys(self) -> bool:
        """Whether any line is of a key of the configuration."""
        return any(line.place.kind == CONFIG for line in self.lines)


def effects_of(steps: Sequence[Step]) -> Effects:
    """What the steps of a preview lead to."""
    revision = Revision.objects.filter(id=1).values_list("number", flat=True).first() or 0
    stored = {
        Place(CONFIG, *place): value for *place, value in Override.objects.values_list("app", "component", "name", "vo", "value")
    }
    then: dict[Place, str | None] = {**stored, **{step.place: step.after for step in steps if step.place.kind == CONFIG}}
    before, after = _config(revision, stored), _config(revision, then)
    return Effects(revision, tuple(_effects(steps, before, after)), before, after)


def _config(revision: int, texts: Mapping[Place, str | None]) -> Config:
    rows = [Row(*place[1:], text) for place, text in texts.items() if text is not None]
    return Config(revision, rows, keys.KEYS)


def _effects(steps: Sequence[Step], before: Config, after: Config) -> Iterable[Effect]:
    for step in steps:
        told: dict[str, Any] = {name: getattr(step, name) for name in ("place", "before", "until_before", "after", "until")}
        holds = [_holds(config, step.place) for config in (before, after)]
        if step.place.kind != CONFIG:
            holds = [text or NOT_DECLARED for text in (step.before, step.after)]
        yield Effect(**told, effective_before=holds[0], effective_after=holds[1], differs=step.differs)


def _holds(config: Config, place: Place) -> str:
    try:
        return config.text(place.component, place.name, place.vo, place.app)
    except BadConfig:
        return NOT_DECLARED
