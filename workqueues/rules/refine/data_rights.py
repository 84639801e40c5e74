"""Who may write to which dataset (decision F8). That others' datasets cannot be read is the catalogue's part, which knows none.

Not here: who has which role (`queries.writers`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import problem
from workqueues.rules.refine.types import TaskDocument
from workqueues.states import OUTPUT_TYPES


@dataclass(frozen=True, slots=True)
class Writer:
    """For whom a task writes: its VO and its owner. `produces`: with the role production, for every dataset of the VO."""

    vo: str
    user_name: str
    produces: bool = False


def check_outputs(document: TaskDocument, writer: Writer, owners: Mapping[str, str]) -> Iterator[Problem]:
    """The outputs that would go to a dataset of somebody else; `owners`: of the datasets that exist in the VO."""
    for item in document.items if not writer.produces else ():
        for name in item.names if item.type in OUTPUT_TYPES else ():
            if owners.get(name, writer.user_name) != writer.user_name:
                yield problem(f"{item.path}.dataset", "owner", of_another(name, writer))


def of_another(name: str, writer: Writer) -> str:
    """Why the dataset is not written to."""
    return f"the dataset {name} of VO {writer.vo} belongs to another user than {writer.user_name}; choose another name"
