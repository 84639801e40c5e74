"""An element that a child gives back, told by several at once, beside its lease that ends and its child that was restored."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.db.models import F

from brokerage.queries.invariants import check
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.child_broker import Child, ended
from tests.flow.steps import LIFE, run_agents
from workqueues.ledger.elements.locations import due_elements
from workqueues.ledger.elements.returning import lapse, take_all_back
from workqueues.ledger.pulled_elements import give_back
from workqueues.models import ChildBroker, Element, ElementChange, ElementInput, File, PulledElement

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """What each gives; each on a connection of its own."""

    def closed(act: Callable[[], Any]) -> Any:
        try:
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(closed, acts))


def test_it_comes_back_once_whoever_says_so_at_once() -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 6)
    submitted(reading("t", "in.data", workTo="children"))
    run_agents(2, (*LIFE, "offer"))
    child = Child()
    for n in range(3):
        (head,) = child.pulled()
        (work,) = child.work(head)
        a, b, *_ = [file["lfn"] for file in work["inputs"][0]["files"]]
        child.report(child.of(head, "Running", ended(work, n + 1, a, b)))
        Element.objects.update(lease_until=F("lease_until") - timedelta(days=1))
        (of_child,) = ChildBroker.objects.all()
        said = {**child.of(head, "Canceled"), "sentence": "no numbers"}
        tell = partial(child.report, said)
        before = ElementChange.objects.latest("id").id
        at_once(tell, tell, partial(lapse, 10, "agent:offer"), tell, partial(take_all_back, of_child.id, "restored", "test"))
        moves = ElementChange.objects.filter(id__gt=before)
        if n == 2:
            assert Element.objects.get().status == "Done"
            break
        assert [(move.old, move.new) for move in moves] == [("Running", "Available")]
        assert File.objects.filter(type="input", status="picked").count() == 4 - 2 * n
        assert not ElementInput.objects.filter(status="live").exists()
        assert [(f.invariant.name, f.examples) for f in check() if f.violations] == []
        Element.objects.update(rests_until=F("rests_until") - timedelta(days=1))
        run_agents(1, ("offer",))
        assert due_elements(10, 3600.0) == []


def test_a_child_gives_it_back_once() -> None:
    PulledElement.objects.create(
        element_id=5, try_nr=1, incarnation="00000000-0000-4000-8000-0000000000aa", parent_task_id=7, status="Acquired",
        told="Acquired", priority=1, jobs=1, site="A", vo="demo", lease_until="2030-01-01T00:00:00Z",
    )  # fmt: skip
    id_ = PulledElement.objects.get().id
    done = at_once(*[partial(give_back, id_, f"reason {n}", "agent:pull") for n in range(4)])
    assert sum(done) == 1
    row = PulledElement.objects.get()
    assert (row.status, row.given_back.startswith("reason")) == ("Canceled", True)
