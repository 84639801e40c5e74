"""What pages show: every declared key with its default, the overrides and what they lead to, who made them, when and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from broker_site.foundation.gdpconfig import keys
from broker_site.foundation.gdpconfig.keys import BadConfig, Key
from broker_site.foundation.gdpconfig.models import Change, Override


@dataclass(frozen=True, slots=True)
class Setting:
    """One override. `fault`: why it is not used, empty if it is."""

    name: str
    vo: str
    text: str
    change: Change
    override_id: int
    fault: str = ""
    until: datetime | None = None
    afterwards: str | None = None


@dataclass(frozen=True, slots=True)
class Effective:
    """One key and what is set for it. `key` is None for overrides of a key that is no longer declared."""

    app: str
    component: str
    name: str
    key: Key | None
    settings: tuple[Setting, ...] = ()

    @property
    def default(self) -> str:
        return self.key.write(self.key.default) if self.key else ""

    @property
    def written(self) -> str:
        """The key as it is written."""
        return f"{self.component}.{self.name}" if self.app == keys.APP else f"{self.app}:{self.component}.{self.name}"

    def says(self, words: str) -> bool:
        """Whether all of these words stand in key or documentation, whatever their case."""
        text = f"{self.app} {self.written} {self.key.doc if self.key else ''}".lower()
        return all(word in text for word in words.lower().split())

    @property
    def effective(self) -> str:
        """The value that holds for all VOs without an override of their own, as text; for a pattern its default."""
        general = [s.text for s in self.settings if not s.vo and not s.fault and s.name == self.name]
        return general[0] if general else self.default


def effective(using: str = "default") -> list[Effective]:
    """All keys in the order of app, component and declaration, with their overrides, from the database as it is now (one query).

    Overrides of undeclared keys come last.
    """
    by_key: dict[tuple[str, str, str], list[Setting]] = {}
    for o in Override.objects.using(using).select_related("change__change_set"):
        try:
            name = keys.KEYS.matching(o.component, o.name, o.app)[0].name
        except BadConfig:
            name = o.name
        setting = Setting(o.name, o.vo, o.value, o.change, o.pk, fault_of(o), o.until, o.afterwards)
        by_key.setdefault((o.app, o.component, name), []).append(setting)
    rows = [
        Effective(key.app, key.component, key.name, key, tuple(by_key.pop((key.app, key.component, key.name), ())))
        for key in sorted(keys.KEYS, key=lambda key: (key.app, key.component))
    ]
    return rows + [Effective(*place, None, tuple(settings)) for place, settings in sorted(by_key.items())]


def fault_of(override: Override) -> str:
    """Why an override is not used, in words: its key is gone or no longer takes the value. Empty where it is used."""
    try:
        for key in keys.KEYS.matching(override.component, override.name, override.app):
            key.read(override.value)
    except BadConfig as bad:
        return str(bad)
    return ""


def lines_of_sets(of: Q | None = None) -> Coalesce:
    """How many such lines a change set has: to annotate a query of sets."""
    lines = Change.objects.filter(of or Q(), change_set=OuterRef("pk")).order_by().values("change_set")
    return Coalesce(Subquery(lines.annotate(n=Count("id")).values("n")), 0)
