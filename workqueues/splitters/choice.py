"""Which splitter a master dataset takes."""

from __future__ import annotations

from broker_site.kernel.registry import Registry
from workqueues.rules.split_rule import SplitRules
from workqueues.splitters.by_events import by_events
from workqueues.splitters.by_files import by_files
from workqueues.splitters.protocol import Splitter
from workqueues.splitters.pseudo import pseudo
from workqueues.splitters.runs import WHOLE

SPLITTERS: Registry[Splitter] = Registry("splitter")
SPLITTERS.add("by_files", by_files)
SPLITTERS.add("by_events", by_events)
SPLITTERS.add("pseudo", pseudo)

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


def splitter_for(dataset_type: str, rules: SplitRules = NO_RULES) -> Splitter:
    """The splitter for master datasets of this type."""
    return SPLITTERS[splitter_name(dataset_type, rules)]
