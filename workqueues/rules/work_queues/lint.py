"""What is wrong with work queues: faults that refuse one, and warnings about what they do together (row J1).

Whether two criteria can hold for the same task is tried with tasks made of the values that both name; what needs three queues
together to be seen is not. Not here: the mapping of a task (`work_queue_mapping`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, permutations, product
from math import prod
from typing import Any

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from workqueues.rules.work_queues.criteria import BadCriteria, Expression, holds, parse, read_variables
from workqueues.rules.work_queues.criteria.expression import Among, Comparison, Like, Value, as_number, predicates
from workqueues.rules.work_queues.criteria.parse import BadVariables, variables_of
from workqueues.rules.work_queues.mapping import Queue, ordered
from workqueues.rules.work_queues.task_attributes import ATTRIBUTES, spelled

MOST_TRIED = 5000
"""Tasks that are tried for a pair of queues."""
MOST_IN_ALL, LEAST_TRIED = 50_000, 50
"""Tasks that are tried for all pairs together, and for each pair however many there are."""
OTHERS = (None, "something else", "-")
"""Values that no criteria name. Two texts with nothing in common, so that hardly a pattern has both."""
_STRIDE = 2_654_435_761
"""A prime, by which the tasks that are tried are spread over all there could be."""

ANYTHING = ("", "*")


@dataclass(frozen=True, slots=True)
class Definition:
    """A work queue as an operator writes it; `partition` is the name of the one it is in."""

    name: str
    order: int | None = None
    criteria: str = ""
    variables: str = ""
    share: float | None = None
    is_partition: bool = False
    partition: str = ""
    vo: str = ""
    label: str = ""

    def read(self) -> Queue:
        """The queue for the mapping. Raises BadCriteria, BadVariables."""
        criteria = parse(self.criteria, read_variables(self.variables))
        return Queue(self.name, self.order, criteria, self.is_partition, self.partition, self.vo, self.label)


def faults(definition: Definition, others: Iterable[Definition]) -> list[Problem]:
    """Everything that refuses a queue beside the other ones; `field` is the column."""
    problems = list(_criteria_faults(definition))
    known = {other.name: other for other in others}
    problems += [
        Problem("queue_order", "unique", f"{other.name} has the order {other.order} already")
        for other in known.values()
        if definition.order is not None and other.order == definition.order
    ]
    if definition.share is not None and definition.share < 0:
        problems.append(Problem("queue_share", "range", f"expected 0 or more, found {definition.share:g}"))
    if definition.is_partition and definition.criteria.strip():
        problems.append(Problem("criteria", "partition", "a partition has no criteria; its sub queues have"))
    if definition.partition:
        into = known.get(definition.partition)
        if definition.is_partition:
            problems.append(Problem("partition", "partition", "a partition cannot be in a partition"))
        elif into is None or not into.is_partition:
            problems.append(Problem("partition", "partition", f"{definition.partition} is no partition"))
    if not definition.is_partition and any(other.partition == definition.name for other in known.values()):
        problems.append(Problem("is_partition", "partition", "it has sub queues"))
    return problems


def _criteria_faults(definition: Definition) -> Iterator[Problem]:
    try:
        variables = read_variables(definition.variables)
    except BadVariables as error:
        yield Problem("variables", "format", str(error))
        return
    try:
        expression = parse(definition.criteria, variables)
    except BadCriteria as error:
        yield Problem("criteria", "format", str(error))
        return
    for name in dict.fromkeys(predicate.attribute for predicate in predicates(expression)):
        if name.lower() not in ATTRIBUTES:
            near = nearest(name, ATTRIBUTES)
            hint = f"; the nearest known one is {spelled(near)}" if near else ""
            yield Problem("criteria", "unknown", f"tasks have no attribute {name}{hint}")
    for name in sorted(set(variables) - set(variables_of(definition.criteria))):
        yield Problem("variables", "unused", f"the criteria do not use :{name}")


def warnings(definitions: Sequence[Definition]) -> dict[str, list[str]]:
    """Queue -> what an operator should know of it; queues with faults of their own are left out."""
    queues = [d.read() for d in definitions if not list(_criteria_faults(d))]
    remarks: dict[str, list[str]] = {queue.name: [] for queue in queues}
    for partition in (queue for queue in queues if queue.is_partition):
        if not any(queue.partition == partition.name for queue in queues):
            remarks[partition.name].append("no sub queue is in this partition, so no task comes to it")
    takers = [queue for queue in ordered(queues) if not queue.is_partition]
    pairs = len(takers) * (len(takers) - 1) // 2
    most = min(MOST_TRIED, max(LEAST_TRIED, MOST_IN_ALL // max(pairs, 1)))
    for place, queue in enumerate(takers):
        for earlier in takers[:place]:
            if warning := _beside(earlier, queue, most):
                remarks[queue.name].append(warning)
    if not any(queue.criteria is None and queue.vo in ANYTHING and queue.label in ANYTHING for queue in takers):
        for queue in takers[-1:]:
            remarks[queue.name].append("no queue takes every task; what meets no criteria waits until one does")
    return {name: sentences for name, sentences in remarks.items() if sentences}


def _beside(earlier: Queue, later: Queue, most: int) -> str:
    """What the earlier one of two queues means for the later one; empty where they do not meet."""
    if not _meet(earlier.vo, later.vo) or not _meet(earlier.label, later.label):
        return ""
    covers = earlier.vo in (*ANYTHING, later.vo) and earlier.label in (*ANYTHING, later.label)
    if later.criteria is None and earlier.criteria is not None:
        return ""
    tasks, whole = _tasks(most, earlier.criteria, later.criteria)
    mine = [task for task in tasks if holds(later.criteria, task)]
    overlap = [task for task in mine if holds(earlier.criteria, task)]
    if whole and mine and len(overlap) == len(mine) and covers:
        return f"no task reaches it: {earlier.name} takes all that it would"
    return f"{earlier.name} comes first for tasks like {_in_words(overlap[0])}" if overlap else ""


def _meet(scope: str, other: str) -> bool:
    return scope in ANYTHING or other in ANYTHING or scope == other


def _tasks(most: int, *criteria: Expression | None) -> tuple[list[dict[str, Any]], bool]:
    """At most so many tasks made of the values that the criteria name, values beside them, and nothing; whether these are all."""
    values: dict[str, dict[Any, None]] = {}
    named = chain.from_iterable(map(_named, criteria))
    for attribute, value in chain(named, _joined(*criteria)):
        values.setdefault(attribute.lower(), dict.fromkeys(OTHERS))[value] = None
    count = prod(map(len, values.values()))
    if count <= most:
        return [dict(zip(values, task, strict=True)) for task in product(*values.values())], True
    choices = {name: list(named) for name, named in values.items()}
    return [_nth(choices, number * _STRIDE % count) for number in range(most)], False


def _nth(choices: Mapping[str, Sequence[Any]], number: int) -> dict[str, Any]:
    """One of all tasks that the choices allow."""
    task = {}
    for name, values in choices.items():
        number, place = divmod(number, len(values))
        task[name] = values[place]
    return task


def _named(expression: Expression | None) -> Iterator[tuple[str, Any]]:
    for predicate in predicates(expression):
        match predicate:
            case Comparison(attribute, _, value):
                yield from ((attribute, near) for near in _near(value))
            case Among(attribute, values):
                yield from ((attribute, value) for value in values)
            case Like(attribute, pattern):
                yield attribute, _like(pattern, "x")
                yield attribute, _like(pattern, "")


def _like(pattern: str, between: str) -> str:
    """A text that a pattern matches, with this for each `%`."""
    return re.sub(r"\\([\\%_])|(%)|_", lambda part: part[1] or (between if part[2] else "x"), pattern)


def _joined(*criteria: Expression | None) -> Iterator[tuple[str, str]]:
    """Texts that begin as one criteria says and end as the other does: `GP%` and `%TOP` have GPTOP in common."""
    patterns = [
        [(each.attribute.lower(), _like(each.pattern, "")) for each in predicates(expression) if isinstance(each, Like)]
        for expression in criteria
    ]
    for heads, tails in permutations(patterns, 2):
        yield from ((attribute, begin + end) for attribute, begin in heads for name, end in tails if name == attribute)


def _near(value: Value) -> Iterator[Value]:
    number = as_number(value)
    yield value
    if number is not None:
        yield from (number - 1, number, number + 1)


def _in_words(task: Mapping[str, Any]) -> str:
    known = [f"{spelled(name) if name in ATTRIBUTES else name}={value}" for name, value in task.items() if value is not None]
    return ", ".join(known) or "those that set nothing"
