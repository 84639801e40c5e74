"""Where a nucleus collects the outputs of a task: which of its storage endpoints, by the token of each output. Pure.

Facts on data movement 3.1: `dst:` names a place, `ddd:` means that files stay where they are made, a token that fits none of its
endpoints is the default one, and a list with commas means several places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brokerage.rules.grid.document import Grid
from brokerage.rules.grid.output_storages import OutputStorage, meant, tokens_to_place
from brokerage.rules.grid.queue_columns import default_output, output_storage, outputs_of


@dataclass(frozen=True, slots=True)
class Collection:
    """The storage endpoints of a nucleus that take output; `default`: where outputs without a token go, empty if nowhere."""

    storages: tuple[OutputStorage, ...] = ()
    default: str = ""

    def places(self, token: str) -> Sequence[str]:
        """The endpoints that collect outputs with this token, the first one before the others; none: they stay where they are
        made.
        """
        if not token:
            return [self.default] if self.default else []
        found = [meant(self.storages, wanted) for wanted in tokens_to_place([token])]
        names = [storage.name if storage else self.default for storage in found]
        return list(dict.fromkeys(filter(None, names)))


STAY = Collection()
"""Outputs stay where they are made."""


def collection_at(grid: Grid, nucleus: str) -> Collection:
    """How a site of the grid collects outputs."""
    storages = outputs_of(grid, nucleus)
    default = default_output(storages)
    return Collection(tuple(output_storage(storage) for storage in storages), "" if default is None else default.name)
