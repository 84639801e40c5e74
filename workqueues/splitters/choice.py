"""Which ways of cutting there are, ours and those of other packages, and which one a master dataset takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from broker_site.foundation.kernel.registry import Registry
from workqueues.rules.jobs.split_rule import SplitRules
from workqueues.splitters.by_events import by_events
from workqueues.splitters.by_files import by_files, pseudo
from workqueues.splitters.protocol import Splitter
from workqueues.splitters.runs import WHOLE

Kind = Literal["files", "events", "numbers"]
"""What is cut: whole files, runs of events of files, the numbers of a task without input."""


@dataclass(frozen=True, slots=True)
class SplitterDeclaration:
    """A splitter under its name, and the kinds of pieces that it can cut."""

    name: str
    cut: Splitter
    kinds: tuple[Kind, ...]
    doc: str


SPLITTERS: Registry[SplitterDeclaration] = Registry("splitter")


def splitter(name: str, *, kinds: tuple[Kind, ...] = ("files",)) -> Callable[[Splitter], Splitter]:
    """Declare a way of cutting; the function stays as it is. ValueError if the name is taken."""

    def declare(cut: Splitter) -> Splitter:
        SPLITTERS.add(name, SplitterDeclaration(name, cut, kinds, cut.__doc__ or ""))
        return cut

    return declare


splitter("by_files")(by_files)
splitter("by_events", kinds=("files", "events"))(by_events)
splitter("pseudo", kinds=("numbers",))(pseudo)
OURS = frozenset(SPLITTERS)

NO_RULES = SplitRules()


def splitter_name(dataset_type: str, rules: SplitRules = NO_RULES) -> str:
    """The name of the splitter for master datasets of this type; ValueError for a type that makes no jobs.

    Boundaries that are not split leave no room for cutting events (facts on splitting 8.2; refused at submission, decision F3).
    """
    if dataset_type == "pseudo_input":
        return "pseudo"
    if dataset_type != "input":
        raise ValueError(f"a dataset of the type {dataset_type} is no master: no jobs are made from it")
    cuts_events = (rules.events_per_job or rules.target_events) and rules.boundary < WHOLE
    return "by_events" if cuts_events else "by_files"
