"""Brokers that pull elements at once, against a database (facts on work queues b5)."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import uuid4

from broker_site.roof.conformance.at_once import together

VO = "conformance"
AT_ONCE = 5
"""Elements of one pull: few, so that the pulls of all meet many times."""


def pulled(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """So many elements that wait, and brokers that pull at once until each is told that nothing waits."""
    from workqueues.models import Element

    _clear()
    _wait(given["elements"], sorted(given["slots"]))
    children = [_child(number) for number in range(given["agents"])]
    told = together(*(partial(_pull_all, child, given["slots"]) for child in children))
    for error in (each for each in told if isinstance(each, Exception)):
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        raise error
    got = Counter(element for elements in told for element in elements)
    held = Element.objects.filter(status="Acquired", child__isnull=False).count()
    if held != len(got):
        raise AssertionError(f"{len(got)} elements were told, {held} are held")
    return {"acquired_total": len(got), "acquired_twice": sum(n - 1 for n in got.values())}


def _clear() -> None:
    from workqueues.models import ChildBroker, Element, ElementGroup, Task

    for model in (Element, ElementGroup, ChildBroker):
        model.objects.all().delete()
    Task.objects.filter(vo=VO, work_to="children").delete()


def _wait(n: int, sites: list[str]) -> None:
    """Elements of a task that runs, each of one job, at these sites."""
    from workqueues.ledger.elements.groups import GroupKey, groups
    from workqueues.ledger.elements.moves import elements_born
    from workqueues.ledger.moves import move_task
    from workqueues.models import Dataset, Element, Task

    born = {"task_name": "elements", "user_name": "somebody", "vo": VO, "status": "registered", "work_to": "children"}
    task = Task.objects.create(**born)
    move_task(task, "defined", VO, "its parameters are read")
    move_task(task, "ready", VO, "it has work")
    move_task(task, "running", VO, "its work begins")
    records = {"dataset_name": "in", "type": "pseudo_input", "vo": VO, "status": "ready"}
    dataset = Dataset.objects.create(task=task, **records)
    (group,) = groups([GroupKey(VO, "", tuple(sites))]).values()
    like = {"status": "Available", "priority": 1, "jobs": 1, "n_files": 1, "group_id": group}
    rows = [Element(task=task, dataset=dataset, **like) for _ in range(n)]
    elements_born(rows, VO, "cut")


def _child(number: int) -> int:
    """The credential of a new child broker."""
    from broker_site.foundation.access.principal import SYSTEM
    from workqueues.ledger.child_brokers import add_child

    return int(add_child(f"child{number}", "", "", SYSTEM).child.credential_id)


def _pull_all(child: int, slots: Mapping[str, int]) -> list[int]:
    """What one broker gets until it is told that nothing waits; it says of each that it has it."""
    from broker_site.foundation.kernel import clock
    from broker_site.foundation.outside_data import read
    from workqueues.ledger.elements.moves import move_elements
    from workqueues.ledger.elements.pulling import ChildPull, Pulled, PullTerms, pull_each
    from workqueues.rules.elements.messages import Pull

    said: dict[str, Any] = {"protocol": 1, "version": "1", "instance": str(uuid4()), "incarnation": str(uuid4()), "most": AT_ONCE}
    said["sites"] = {site: {"pending_slots": n, "running_slots": 0} for site, n in slots.items()}
    got: list[int] = []
    while True:
        ask = read(Pull, {**said, "now": clock.now().isoformat(), "key": str(uuid4())})
        (pulled,) = pull_each([ChildPull(child, ask)], PullTerms(60.0), clock.now())
        if not isinstance(pulled, Pulled):
            raise pulled
        answer = pulled.answer
        elements = [int(one["id"]) for one in answer["elements"]]
        move_elements(elements, "Acquired", VO, "it has them", ("Negotiating",))
        got += elements
        if not elements and "in_other_hands" not in answer["why"]:
            return got
