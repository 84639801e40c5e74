"""The share trees as the rules see them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workqueues.models import GlobalShare, Task
from workqueues.rules.shares.mapping import UNDEFINED, Leaf, leaf_of
from workqueues.rules.shares.patterns import pattern_fault
from workqueues.rules.shares.tree import Node

PATTERNS = ("prod_source_label", "working_group", "campaign", "processing_type", "trans_path")


@dataclass(frozen=True, slots=True)
class Tree:
    """The shares of one VO: nodes from the top, leaves in the order of matching, and leaves that are never throttled."""

    nodes: tuple[Node, ...]
    leaves: tuple[Leaf, ...]
    unthrottled: frozenset[str]

    def share_of(self, columns: Mapping[str, Any]) -> str:
        """The leaf of a task with these columns, empty where it names one that is not there."""
        name: str = columns.get("gshare") or leaf_of(self.leaves, columns)
        return name if name == UNDEFINED or any(name == leaf.name for leaf in self.leaves) else ""


def share_anew(task: Task) -> str:
    """The leaf that the task would get if it came now, by its parameters; the one that it has where none takes it."""
    tree = trees(GlobalShare.objects.filter(vo=task.vo)).get(task.vo)
    columns = {name: getattr(task, name) for name in PATTERNS} | {"gshare": task.params.task_params.get("gshare") or ""}
    return (tree.share_of(columns) if tree else "") or task.gshare


def trees(rows: Iterable[GlobalShare] | None = None) -> dict[str, Tree]:
    """VO -> its tree; one statement. A VO without shares has none."""
    by_vo: dict[str, list[GlobalShare]] = defaultdict(list)
    for row in GlobalShare.objects.all() if rows is None else rows:
        by_vo[row.vo].append(row)
    return {vo: _tree(rows) for vo, rows in by_vo.items()}


def bad_patterns(rows: Iterable[GlobalShare]) -> Iterator[tuple[str, str]]:
    """Share and what is wrong with a regular expression of it that was written past the admin; such a leaf takes no tasks."""
    for row in rows:
        for column in PATTERNS:
            if fault := pattern_fault(getattr(row, column)):
                yield row.name, f"{column}: {fault}"


def _tree(rows: Sequence[GlobalShare]) -> Tree:
    below: dict[str | None, list[GlobalShare]] = defaultdict(list)
    for row in rows:
        below[row.parent_id].append(row)
    leaves = [row for row in rows if row.name not in below]
    return Tree(
        nodes=tuple(_nodes(None, below)),
        leaves=tuple(Leaf(row.name, tuple((p, getattr(row, p)) for p in PATTERNS if getattr(row, p))) for row in leaves),
        unthrottled=frozenset(row.name for row in leaves if not row.throttled),
    )


def _nodes(parent: str | None, below: Mapping[str | None, Sequence[GlobalShare]]) -> Iterator[Node]:
    for row in below.get(parent, ()):
        yield Node(row.name, row.value, tuple(_nodes(row.name, below)))
