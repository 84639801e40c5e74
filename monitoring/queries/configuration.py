"""The configuration as pages show it: keys with what holds, one key with its history, sets of changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Prefetch, QuerySet

from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.gdpconfig import keys
from broker_site.foundation.gdpconfig.changesets import in_words, split_key
from broker_site.foundation.gdpconfig.keys import BadConfig, Key
from broker_site.foundation.gdpconfig.listing import Effective, effective
from broker_site.foundation.gdpconfig.models import Change, ChangeSet, Revision
from broker_site.foundation.gdpconfig.visible_lines import seen_lines, seen_sets
from monitoring.queries.database import alias

FIRST_LINES = 5
"""Lines of a set that the list tells."""
MOST_HISTORY = 100
"""Changes of a key that its page shows."""


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """One key, or one override of it: `name` has the parts filled in then; `override` None where none is set."""

    key: str
    vo: str
    type: str
    unit: str
    default: str
    override: str | None
    effective: str
    who: str
    why: str
    at: datetime | None
    until: datetime | None
    fault: str
    doc: str


@dataclass(frozen=True, slots=True)
class ChangeSetRow:
    """One set of changes; `changes`: its first lines in words, of those that are seen; `n_hidden` are not."""

    id: int
    at: datetime
    who: str
    why: str
    ticket: str
    source: str
    approved_by: str
    reverts: int | None
    n_lines: int
    n_hidden: int
    changes: Sequence[str]


def newest_revision() -> int:
    """The number of the last set; 0 before the first."""
    return Revision.objects.using(alias()).filter(id=1).values_list("number", flat=True).first() or 0


def config_keys(words: str = "", *, overridden: bool = False) -> list[Effective]:
    """The keys that have all of these words, or only those of them with an override."""
    return [row for row in effective(alias()) if row.says(words) and (row.settings or not overridden)]


def config_rows(found: Sequence[Effective]) -> Iterator[ConfigRow]:
    """The same as one row for each override, and one for each key without any."""
    for row in found:
        told: dict[str, Any] = {
            "type": row.key.type if row.key else "",
            "unit": row.key.unit if row.key else "",
            "default": row.default,
            "doc": row.key.doc if row.key else "",
        }
        if not row.settings:
            yield ConfigRow(
                key=row.written,
                vo="",
                override=None,
                effective=row.effective,
                who="",
                why="",
                at=None,
                until=None,
                fault="",
                **told,
            )
        for setting in row.settings:
            yield ConfigRow(
                key=setting.change.place.key,
                vo=setting.vo,
                override=setting.text,
                effective=row.default if setting.fault else setting.text,
                who=setting.change.who,
                why=setting.change.why,
                at=setting.change.at,
                until=setting.until,
                fault=setting.fault,
                **told,
            )


@dataclass(frozen=True, slots=True)
class KeyPage:
    """One key: as declared (None: no longer), with overrides under its name, and its newest changes."""

    written: str
    pattern: bool
    row: Effective
    key: Key | None
    changes: Sequence[Change]


def key_page(written: str) -> KeyPage | None:
    """The key of this name, as declared or with its parts filled in; None where there is no such key and no override of it."""
    app, component, name = split_key(written)
    key = _declared(app, component, name)
    pattern = key is not None and key.name == name and bool(key.parts)
    rows = [row for row in effective(alias()) if (row.app, row.component) == (app, component)]
    row = next((row for row in rows if row.name == (key.name if key else name)), None)
    if row is None:
        return None
    if not pattern:
        row = Effective(app, component, name, key, tuple(s for s in row.settings if s.name == name))
    changes = Change.objects.using(alias()).select_related("change_set").filter(kind="config", app=app, component=component)
    names = [name] if not pattern else [s.name for s in row.settings]
    newest = changes.filter(name__in=names).order_by("-change_set_id")[:MOST_HISTORY]
    return KeyPage(written, pattern, row, key, list(newest))


def _declared(app: str, component: str, name: str) -> Key | None:
    try:
        return keys.KEYS.matching(component, name, app)[0]
    except BadConfig:
        return next((key for key in keys.KEYS if (key.app, key.component, key.name) == (app, component, name)), None)


def visible_sets(scope: VoScope) -> QuerySet[ChangeSet]:
    """Those of which a line is seen, with their first lines that are."""
    first = Prefetch("lines", _seen_lines(scope)[:FIRST_LINES], to_attr="first_lines")
    return seen_sets(scope, alias()).prefetch_related(first)


def _seen_lines(scope: VoScope) -> QuerySet[Change]:
    return Change.objects.using(alias()).filter(seen_lines(scope)).order_by("id")


def set_rows(table: QuerySet[ChangeSet]) -> list[ChangeSetRow]:
    """Rows of the list."""
    return [
        ChangeSetRow(
            id=made.revision,
            at=made.at,
            who=made.who,
            why=made.why,
            ticket=made.ticket,
            source=made.source,
            approved_by=made.approved_by,
            reverts=made.reverts_id,
            n_lines=made.n_lines,  # type: ignore[attr-defined]
            n_hidden=made.n_hidden,  # type: ignore[attr-defined]
            changes=[told(line) for line in made.first_lines],  # type: ignore[attr-defined]
        )
        for made in table
    ]


def told(line: Change) -> str:
    """A line in words."""
    until = f" until {line.until:%Y-%m-%d %H:%M}" if line.until else ""
    return f"{line.place}: {in_words(line.kind, line.before, line.after)}{until}"


def find_set(scope: VoScope, revision: int) -> ChangeSet | None:
    """One set with its lines that are seen, and the sets that took it back; None where none is."""
    if revision >= 1 << 63:
        return None
    lines = Prefetch("lines", _seen_lines(scope))
    return seen_sets(scope, alias()).prefetch_related(lines, "reverted_by").filter(pk=revision).first()
