"""A broker that is child and parent at once gives its own children serial numbers of its lots alone (decision J4)."""

from __future__ import annotations

import pytest

from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import LIFE, run_agents
from workqueues.ledger.elements.lots import Lot, lot_of
from workqueues.models import Element, OutputTemplate, Task

pytestmark = pytest.mark.django_db(transaction=True)


def element_of(task: Task, before: int, last: int) -> Element:
    """Of a task whose numbers are a lot."""
    OutputTemplate.objects.filter(task=task).update(serial_nr=before, max_serial_nr=last)
    return Element.objects.get(task=task)


def numbers(lots: list[Lot]) -> list[int]:
    return [number for lot in lots for number in range(lot.first, lot.last + 1)]


def test_each_try_has_numbers_of_the_lot_of_its_own_task() -> None:
    grid("ALPHA")
    catalogue_dataset("in.data", 4)
    one, other = (
        submitted(reading("t", "in.data", workTo="children", allowTaskDuplication=True, noWaitParent=True)) for _ in range(2)
    )
    run_agents(2, (*LIFE, "offer"))
    first, second = element_of(one, 1000, 1200), element_of(other, 1200, 1400)
    lots: dict[int, list[Lot]] = {first.id: [], second.id: []}
    for _ in range(9):
        for element, given in lots.items():
            given.append(lot_of(element, 200, 4))
            assert lot_of(element, 200, 4) == given[-1] or given[-1].last < given[-1].first
        Element.objects.update(serial_first=None, serial_last=None)
    for of, (low, high) in ((first, (1001, 1200)), (second, (1201, 1400))):
        mine = numbers(lots[of.id])
        assert len(mine) == len(set(mine))
        assert low <= min(mine) and max(mine) <= high
        assert all(lot.last - lot.first >= 3 for lot in lots[of.id][:5]), "a try has enough for its jobs as long as there are any"
    assert lots[first.id][-1] == Lot(1201, 1200), "none is left"
