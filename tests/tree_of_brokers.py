"""Child brokers and elements for tests: children in every state, and elements of one task that they pulled, run and ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from broker_site.foundation.access.principal import SYSTEM
from broker_site.foundation.kernel import clock
from workqueues.ledger.child_brokers import add_child, drain_child, revoke_child
from workqueues.ledger.elements.groups import GroupKey, groups
from workqueues.ledger.elements.moves import elements_born, move_elements
from workqueues.ledger.elements.pulling import ChildPull, Pulled, PullTerms, pull_each
from workqueues.models import ChildBroker, Dataset, Element, ElementInbox, ElementInput, ParentBroker, Task
from workqueues.rules.elements.messages import PROTOCOL, Pull, SiteTold

CHILD: dict[str, Any] = {"instance": UUID(int=1), "incarnation": UUID(int=2)}
"""Who a child is, as it says itself."""
SITES = ("SITE_ALPHA", "SITE_BETA")
NORTH_SITES = {
    "SITE_ALPHA": SiteTold(pending_slots=4, running_slots=6, running_jobs=5),
    "SITE_BETA": SiteTold(state="Draining", pending_slots=4, running_slots=2),
}
NASTY = "<script>alert(1)</script> 3 of 10 files done"


@dataclass(frozen=True)
class Tree:
    """Children by name; elements by what became of them."""

    children: dict[str, ChildBroker]
    running: Element
    waiting: Element
    elsewhere: Element


def make_tree(task: Task, n: int = 6) -> Tree:
    """A tree around a task that makes jobs. The child north has pulled one element, which runs; the others wait."""
    children = {name: add_child(name, "", "", SYSTEM).child for name in ("north", "south", "east", "west", "old")}
    _elements(task, n)
    (given,) = pull(children["north"], ask_of(NORTH_SITES, most=1))["elements"]
    move_elements([given["id"]], "Acquired", "child:north", "north has it")
    move_elements([given["id"]], "Running", "child:north", "north makes jobs of it")
    Element.objects.filter(id=given["id"]).update(
        sentence=NASTY, decision="ALPHA: chosen\nBETA: -link_unusable", told_at=clock.now(), n_files_finished=3, serial_first=1,
        serial_last=10,
    )  # fmt: skip
    ElementInput.objects.create(element_id=given["id"], try_nr=given["try_nr"], file_id=1, status="live")
    ElementInbox.objects.create(task=task, status="Running", counts={"Available": n - 1, "Running": 1}, percent_complete=5)
    _heard(children)
    ParentBroker.objects.create(
        url="https://above.example.org/", instance=uuid4(), incarnation=uuid4(), version="0.1.0", protocol=PROTOCOL,
        last_contact=clock.now(), lineage=[str(uuid4())], last_error="certificate has expired", last_error_at=clock.now(),
    )  # fmt: skip
    drain_child(children["south"], 3600, SYSTEM)
    revoke_child(children["old"], SYSTEM, "sold")
    waiting = Element.objects.filter(task=task, status="Available", group__sites__contains=["SITE_ALPHA"]).latest("id")
    elsewhere = Element.objects.get(task=task, group__sites=["SITE_GAMMA"])
    return Tree(children, Element.objects.get(id=given["id"]), waiting, elsewhere)


def pull(child: ChildBroker, said: Pull) -> dict[str, Any]:
    """What a child is told; raises why not."""
    (pulled,) = pull_each([ChildPull(child.credential_id, said)], PullTerms(900.0), clock.now())
    if not isinstance(pulled, Pulled):
        raise pulled
    return pulled.answer


def ask_of(sites: dict[str, SiteTold], most: int = 100, priority: int = 500, waiting: int = 0) -> Pull:
    """A pull of a child with these sites, at the first of which jobs of a priority wait."""
    jobs = {next(iter(sites)): {str(priority): waiting}} if waiting else {}
    return Pull(
        protocol=PROTOCOL, version="0.1.0", now=clock.now(), key=uuid4(), sites=sites, **CHILD,
        jobs=jobs, most=most,
    )  # fmt: skip


def _elements(task: Task, n: int) -> list[Element]:
    """Elements that two sites may have, and the last that a third alone may."""
    dataset = Dataset.objects.filter(task=task).earliest("id")
    keys = (GroupKey(task.vo, "", SITES), GroupKey(task.vo, "", ("SITE_GAMMA",)))
    ids = groups(keys)
    born = [
        Element(
            task=task, dataset=dataset, group_id=ids[keys[i == n - 1]], status="Available", priority=task.current_priority,
            jobs=3, n_files=10, places=["ALPHA_DISK"],
        )
        for i in range(n)
    ]  # fmt: skip
    elements_born(born, "agent:offer", "cut from the input of its task")
    return born


def _heard(children: dict[str, ChildBroker]) -> None:
    """North was just heard of, south a minute ago, east two hours ago with an error, west never."""
    now = clock.now()
    told = {"version": "0.1.0", "protocol": PROTOCOL, **CHILD}
    for name, age_s in (("north", 5), ("south", 60), ("east", 7200), ("old", 600)):
        ChildBroker.objects.filter(id=children[name].id).update(last_contact=now - timedelta(seconds=age_s), **told)
    ChildBroker.objects.filter(id=children["east"].id).update(
        clock_ahead_s=-95000.0, last_error="its clock is behind by a day", last_error_at=now
    )
    for name in ("south", "east"):
        site = {"state": "Normal", "pending_slots": 2, "running_slots": 3, "running_jobs": 3}
        ChildBroker.objects.filter(id=children[name].id).update(
            sites={"SITE_ALPHA": site}, jobs_by_priority={"SITE_ALPHA": {"500": 4, "900": 3}}
        )
