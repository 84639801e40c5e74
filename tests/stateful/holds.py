"""What must hold of a grid whose files move, at every moment and once all is quiet."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from brokerage.models import Job, LocalCopy, Transfer, TransferWish
from brokerage.queries.invariants import look
from brokerage.states import TRANSFER
from tests.moving import parts
from tests.stateful.scene import LINK_ACTIVE, STORAGE_ACTIVE, Scene
from workqueues.models import Replica, TaskChange


def always(scene: Scene) -> None:
    """At every moment."""
    _names_tell_contents(scene)
    _nothing_where_a_root_is_not(scene)
    _first_copies_stay(scene)
    _limits()
    violated = [f"{found.invariant.name}: {found.examples}" for found in look() if found.violations]
    assert not violated, f"{violated}; {_told(violated)}"


def _told(violated: list[str]) -> list[str]:
    """The histories of the tasks that are named there."""
    ids = {int(number) for text in violated for number in re.findall(r"task (\d+)", text)}
    moves = TaskChange.objects.filter(task_id__in=ids).order_by("task_id", "id").values_list("task_id", "new", "who", "why")
    return [f"{task_id} {new} by {who}: {why}" for task_id, new, who, why in moves]


def in_the_end(scene: Scene) -> None:
    """Once all is healed and the agents ran on."""
    always(scene)
    open_ones = Transfer.objects.filter(ended_at=None)
    assert list(open_ones.values_list("id", "status", "reason", "message")) == [], "a request is stuck"
    assert not TransferWish.objects.filter(closed_at=None).exists()
    jobs = Job.objects.filter(ended_at=None)
    left = list(jobs.values_list("id", "status", "computing_queue__name", "task_id", "lease_until"))
    assert not left, f"jobs did not start, or did not end: {left}"
    assert not LocalCopy.objects.exists()
    assert parts(scene.folder) == []
    assert list(Replica.objects.exclude(state__in=("available", "bad")).values_list("file__lfn", "storage", "state")) == []
    for lfn, storage, path in Replica.objects.filter(state="available").values_list("file__lfn", "storage", "path"):
        where = scene.folder / storage.removesuffix("_DISK") / path
        assert where in scene.harmed or where.read_bytes() == scene.contents[lfn], f"{where} is told to be there"


def _names_tell_contents(scene: Scene) -> None:
    for name in scene.names:
        root = scene.place(name)
        for path in root.rglob("*"):
            if path.is_file() and not path.name.startswith("."):
                usual = scene.folder / name / path.relative_to(root)
                assert usual in scene.harmed or path.read_bytes() == scene.contents[path.name], f"{usual} holds something else"


def _nothing_where_a_root_is_not(scene: Scene) -> None:
    for name in scene.away:
        assert list((scene.folder / name).iterdir()) == [], f"something was written where {name} is not"


def _first_copies_stay(scene: Scene) -> None:
    gone = [path for path in scene.stored if path not in scene.harmed and not _real(scene, path).is_file()]
    assert gone == [], "a copy that no transfer brought was removed"


def _real(scene: Scene, path: Path) -> Path:
    name = path.relative_to(scene.folder).parts[0]
    return scene.place(name) / path.relative_to(scene.folder / name)


def _limits() -> None:
    links, into, out = Counter[tuple[str, str]](), Counter[str](), Counter[str]()
    under_way = Transfer.objects.filter(status__in=list(TRANSFER.active))
    for source, destination, from_site, to_site in under_way.values_list(
        "source", "destination", "source_site", "destination_site"
    ):
        links[from_site, to_site] += 1
        into[destination] += 1
        out[source] += 1
    assert max(links.values(), default=0) <= LINK_ACTIVE
    assert max([*into.values(), *out.values()], default=0) <= STORAGE_ACTIVE
