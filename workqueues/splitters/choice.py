"""Which splitter a master dataset takes."""

from __future__ import annotations

from broker_site.kernel.registry import Registry
from workqueues.splitters.by_files import by_files
from workqueues.splitters.protocol import Splitter
from workqueues.splitters.pseudo import pseudo

SPLITTERS: Registry[Splitter] = Registry("splitter")
SPLITTERS.add("input", by_files)
SPLITTERS.add("pseudo_input", pseudo)


def splitter_for(dataset_type: str) -> Splitter:
    """The splitter for master datasets of this type; UnknownName for a type that makes no jobs."""
    return SPLITTERS[dataset_type]
