"""How a site stands when work is pulled to it, and what waits there."""

from __future__ import annotations

import pytest

from brokerage.rules.submission.pulling_sites import pulling_site, waiting_jobs
from workqueues.rules.elements.site_slots import SiteSlots


@pytest.mark.parametrize(
    ("attribute", "queues", "state"),
    [
        ("ACTIVE", ["online"], "Normal"),
        ("ACTIVE", ["brokeroff", "online"], "Normal"),
        ("ACTIVE", ["test"], "Normal"),
        ("ACTIVE", ["brokeroff", "offline"], "Draining"),
        ("ACTIVE", ["brokeroff", "paused"], "Draining"),
        ("ACTIVE", ["offline", "offline"], "Down"),
        ("ACTIVE", [], "Down"),
        ("Draining", ["online"], "Draining"),
        ("Aborted", ["online"], "Aborted"),
        ("CLOSED", ["online"], "Down"),
    ],
)
def test_the_state_of_a_site_is_that_of_its_queues(attribute: str, queues: list[str], state: str) -> None:
    assert pulling_site(attribute, queues, None, 0, 0).state == state


def test_slots_are_thresholds_of_those_that_were_declared() -> None:
    assert pulling_site("ACTIVE", ["online"], None, 1000, 7) == SiteSlots("Normal", 500, 1000, 7)
    assert pulling_site("ACTIVE", ["online"], None, 0, 0) == SiteSlots("Normal", 50, 50, 0)
    assert pulling_site("ACTIVE", ["online"], 200, 1000, 7) == SiteSlots("Normal", 100, 200, 7)


def test_jobs_and_elements_count_by_priority_and_those_without_input_with_the_lowest() -> None:
    ready = {"A": {5: 10, 9: 1}, "B": {3: 2}}
    assert waiting_jobs(ready, {"A": 4, "C": 7, "D": 0}, {"A": {9: 100, 2: 1}, "E": {1: 1}}) == {
        "A": {5: 10, 9: 101, 2: 5},
        "B": {3: 2},
        "C": {0: 7},
        "E": {1: 1},
    }
