"""On a saturated site every share gets its part, at every level of the tree, and none starves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.shares.occupancy import lines, table
from tests.shares.picture import picture
from tests.shares.site import Kind, SaturatedSite, plant
from workqueues.rules.shares.tree import Node

pytestmark = pytest.mark.django_db(transaction=True)

TREE = (
    Node(
        "Production",
        60,
        (
            Node("MC", 70, (Node("Evgen", 50), Node("Simul", 40), Node("Special", 10))),
            Node("Reprocessing", 30, (Node("Data", 75), Node("Derivation", 25))),
        ),
    ),
    Node(
        "Analysis",
        40,
        (
            Node("Users", 80, (Node("Students", 35), Node("Staff", 65))),
            Node("Groups", 20, (Node("Higgs", 3), Node("Top", 1))),
        ),
    ),
)
WORK = {
    "Evgen": (Kind(1, 120),),
    "Simul": (Kind(8, 240),),
    "Special": (Kind(1, 360),),
    "Data": (Kind(1, 180), Kind(8, 300)),
    "Derivation": (Kind(1, 150),),
    "Students": (Kind(1, 90),),
    "Staff": (Kind(1, 120), Kind(1, 240)),
    "Higgs": (Kind(1, 240),),
    "Top": (Kind(1, 120),),
}


FEW = (
    Node("Production", 60, (Node("MC", 70, (Node("Evgen", 60), Node("Simul", 40))), Node("Data", 30))),
    Node("Analysis", 40, (Node("Users", 75), Node("Groups", 25))),
)
FEW_WORK = {
    "Evgen": (Kind(1, 60),),
    "Simul": (Kind(1, 120),),
    "Data": (Kind(1, 90),),
    "Users": (Kind(1, 60), Kind(1, 120)),
    "Groups": (Kind(1, 120),),
}
SHORT_S, LONG_S = 480.0, 1800.0


Work = Mapping[str, Sequence[Kind]]


def played(
    request: pytest.FixtureRequest,
    site: SaturatedSite,
    tree: Sequence[Node],
    work: Work,
    seconds: float,
    **more: Any,
) -> None:
    """Let the time go by, tell of every share, and judge: each within 5 % of its target or one slot, none starved."""
    plant(tree)
    site.submit(tree, work, seconds, **more)
    site.run(seconds)
    found = lines(tree, site.held, seconds)
    print(f"\n{request.node.name}: {len(site.slots)} slots, {seconds / 60:g} min, {len(site.held)} jobs\n{table(found)}")
    if folder := request.config.getoption("--pictures"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        drawn = Path(folder) / f"{request.node.name}.svg"
        drawn.write_text(picture(tree, site.held, seconds, seconds / 60))
    busy = sum(job.within(seconds / 3, seconds) for job in site.held) / (seconds * 2 / 3 * len(site.slots))
    assert busy > 0.95, "the site was not saturated"
    assert [line for line in found if not line.holds()] == []
    assert [line for line in found if not all(line.starts)] == []


@pytest.mark.parametrize("binding", ["early", "late"])
def test_every_share_gets_its_part_of_a_saturated_site(binding: str, request: pytest.FixtureRequest) -> None:
    """Fewer slots, shorter jobs and less time than in the long form."""
    played(request, SaturatedSite.of(60, 0, queues=2), FEW, FEW_WORK, SHORT_S, binding=binding)


@pytest.mark.long
@pytest.mark.parametrize(("queues", "binding"), [(1, "early"), (3, "early"), (3, "late")])
def test_every_share_gets_its_part_of_a_large_site(queues: int, binding: str, request: pytest.FixtureRequest) -> None:
    """Jobs of one core and of eight, of lengths from 90 s to 6 min, half an hour long."""
    played(request, SaturatedSite.of(192, 24, queues), TREE, WORK, LONG_S, binding=binding)
