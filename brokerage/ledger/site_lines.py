"""Lines of change sets that set what submission goes by at a site: its state and its slots, over what its document says.

A row is there where one of these attributes is overridden; each is an override of the grid, as the admin sets them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from broker_site.foundation.agency.look import look_after_commit
from broker_site.foundation.gdpconfig.changesets import Place, Step, columns_of
from broker_site.foundation.gdpconfig.models import Change
from broker_site.foundation.gdpconfig.row_columns import Column, written
from broker_site.foundation.gdpconfig.row_lines import RowLines
from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from brokerage.ledger.grid_overrides import end_override, set_override
from brokerage.models import LocalOverride, Site
from brokerage.rules.submission.site_states import SETTABLE, SITE_LINE

MOST_SLOTS = 1_000_000
_COLUMNS = (
    Column("state", "text", "", longest=16),
    Column("cpu_slots", "number", None, optional=True),
    Column("io_slots", "number", None, optional=True),
)


class SiteLines(RowLines):
    """The name of a line is that of a site. An empty column holds as the document says, and without its line all do."""

    kind, member = SITE_LINE, "sites"
    columns = _COLUMNS
    told_empty = False
    for_all = None

    def rows(self) -> dict[Place, str]:
        """The sites with an override of these attributes, by name."""
        values: dict[str, dict[str, str | int | None]] = defaultdict(lambda: {c.name: c.default for c in _COLUMNS})
        for override in _overrides():
            text = override.value.strip()
            values[override.name][override.attribute] = text if override.attribute == "state" else _whole(text)
        return {self.place(name, ""): written(row) for name, row in sorted(values.items())}

    def name_problems(self, place: Place) -> Iterator[Problem]:
        """Sites are the same for all VOs."""
        if place.vo:
            yield Problem("vo", "vo", "a site belongs to no VO")

    def faults(self, steps: Sequence[Step], after: Mapping[Place, str]) -> Iterator[Problem]:
        """Of each line: a site that is not there, a state that is none, slots that cannot be."""
        known = list(Site.objects.values_list("name", flat=True))
        for step in steps:
            if step.after is None:
                continue
            at = f"lines[{step.number}]"
            if step.place.name not in known:
                near = nearest(step.place.name, known)
                hint = f"; the nearest name is {near}" if near else ""
                yield Problem(f"{at}.key", "reference", f"there is no site {step.place.name[:60]!r}{hint}")
            row = columns_of(step.after)
            if row["state"] and row["state"] not in SETTABLE:
                yield Problem(f"{at}.state", "choice", f"{row['state']!r} is no state of a site; there is: {', '.join(SETTABLE)}")
            yield from (Problem(f"{at}.{name}", "range", fault) for name in _SLOTS if (fault := _slots_fault(name, row[name])))
            if not any(_text(row[column.name]) for column in _COLUMNS):
                yield Problem(at, "required", "a line sets at least one of state, cpu_slots, io_slots; remove it to set none")

    def put(self, changes: Sequence[Change]) -> None:
        """Set and end overrides; the agent that submits is told."""
        there = {(override.name, override.attribute): override for override in _overrides()}
        for change in changes:
            row = columns_of(change.after) if change.after is not None else {}
            for column in _COLUMNS:
                old, text = there.get((change.name, column.name)), _text(row.get(column.name))
                if not text and old is not None:
                    end_override(old)
                elif text and (old is None or old.value != text):
                    override = old or LocalOverride(kind="site", name=change.name, attribute=column.name)
                    override.value, override.until = text, None
                    override.who, override.reason = change.change_set.who[:150], change.change_set.why[:255]
                    set_override(override)
        look_after_commit("submit")


_SLOTS = ("cpu_slots", "io_slots")


def _overrides() -> Iterator[LocalOverride]:
    names = [column.name for column in _COLUMNS]
    yield from LocalOverride.objects.filter(kind="site", attribute__in=names).order_by("name", "attribute")


def _whole(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _text(value: object) -> str:
    """A column as an override has it; empty where it sets nothing."""
    return "" if value is None or value == "" else str(value)


def _slots_fault(name: str, value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, int):
        return f"{name}: {value} is no whole number"
    return "" if 0 <= value <= MOST_SLOTS else f"{name}: {value} is not from 0 to {MOST_SLOTS}"
