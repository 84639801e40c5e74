"""What the grid tables shall hold, whatever it was read from.

Here: the value that documents and feeds are turned into, and our own document as one. Not here: CRIC's documents (`cric`), the
writing (`brokerage.ledger.grid`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from broker_site.foundation.kernel.verdict import Problem
from brokerage.rules.grid.attributes import BadGrid
from brokerage.rules.grid.document import FORMAT, STORED, Entry, GridDocument, QueueEntry, read_grid
from brokerage.rules.grid.measurements import Entries, Facts, StoredParts, read_facts

ONCE: Mapping[str, tuple[str, ...]] = {
    "links": ("from", "to", "activity"),
    "slots": ("queue", "share", "resource_type"),
    "measured": ("queue",),
}
"""What an entry of each list has for itself."""


@dataclass(frozen=True, slots=True)
class GridUpdate:
    """Rows of each table; None: the table stays as it is.

    faulty: kind -> name -> fault, entries that keep their last good version. merged: rows that links and software do not speak of
    stay too.
    """

    sites: Sequence[Entry] | None = None
    storages: Sequence[Entry] | None = None
    queues: Sequence[QueueEntry] | None = None
    links: Entries | None = None
    slots: Entries | None = None
    measured: Entries | None = None
    software: Mapping[str, Mapping[str, Any]] | None = None
    merged: bool = False
    faulty: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many entries there are."""
        parts = (self.sites, self.storages, self.queues, self.links, self.slots, self.measured, self.software)
        return sum(len(part) for part in parts if part is not None)


def read_update(document: object) -> GridUpdate:
    """Our own document. Raises BadGrid with every fault; rules as `read_grid` and `read_facts`, and duplicate."""
    grid = read_grid(document)
    if not isinstance(document, Mapping):
        return GridUpdate()
    facts = read_facts(document, grid, StoredParts)
    if doubles := [*_doubles(facts)]:
        raise BadGrid(doubles)
    stored = {part: getattr(facts, part) for part in STORED if document.get(part) is not None}
    return replace(GridUpdate(grid.sites, grid.storages, grid.queues, notes=grid.notes), **stored)


def _doubles(facts: Facts) -> Iterator[Problem]:
    """Entries of a list that speak of the same as another."""
    for part, names in ONCE.items():
        positions: dict[tuple[Any, ...], int] = {}
        for position, entry in enumerate(getattr(facts, part)):
            key = tuple(entry[name] for name in names)
            if key in positions:
                yield Problem(f"{part}[{position}]", "duplicate", f"{part}[{positions[key]}] has the same {', '.join(names)}")
            positions[key] = position


class _WithoutTitles(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        """The names say enough."""
        return False


def schema() -> dict[str, Any]:
    """The JSON Schema of our own document, draft 2020-12; `docs/reference/grid.schema.json` is its text.

    It says for editors and for other programs what the models enforce, the references between the parts excepted.
    """
    whole, stored = (m.model_json_schema(schema_generator=_WithoutTitles) for m in (GridDocument, StoredParts))
    whole["$defs"] |= stored["$defs"]
    whole["properties"] |= {part: stored["properties"][part] for part in STORED}
    return {"$schema": GenerateJsonSchema.schema_dialect} | whole | {"title": FORMAT}
