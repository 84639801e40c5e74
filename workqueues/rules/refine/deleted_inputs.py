"""Inputs that were deleted since they were given to a task, and that it skips (ignoreMissingInDS). Pure.

Source: facts on task parameters 3.2 (IM); facts on datasets 1.2.1. Not here: what becomes of files of them that the task has
(`rules.jobs.held_files`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from workqueues.rules.refine.templates import input_items
from workqueues.rules.refine.types import DatasetFacts, TaskDocument


def deleted_inputs(
    document: TaskDocument, known: Mapping[str, DatasetFacts], existed: Collection[str]
) -> dict[str, DatasetFacts]:
    """The inputs that are skipped, as the catalogue would have them if they were empty; `known`: what it has, `existed`: what it
    had before.

    A secondary dataset is skipped only beside others of its item: without any no job would be what it should.
    """
    deleted: dict[str, DatasetFacts] = {}
    for n, item in enumerate(input_items(document.items)):
        master = n == 0 and not document.parameters.noInput
        if master or any(name in known for name in item.names):
            deleted |= {name: DatasetFacts(name) for name in item.names if name not in known and name in existed}
    return deleted
