"""The scene itself: what it says that others did is over when it says so, however slow the machine is."""

from __future__ import annotations

from pathlib import Path

import pytest

from brokerage.models import LocalCopy, TransferLink
from tests.moving import asked, wanted
from tests.stateful.scene import Scene
from workqueues.models import CatalogueFile

pytestmark = pytest.mark.django_db


def test_nothing_is_under_way_after_a_mover_worked_on_a_slow_link(tmp_path: Path) -> None:
    scene = Scene.made(tmp_path, ("ALPHA", "BETA"), "ALPHA")
    TransferLink.objects.create(source_id="SITE_ALPHA", destination_id="SITE_BETA", mb_per_s=4)
    scene.store([2_000_000], ["ALPHA"])
    (transfer,) = asked(wanted(CatalogueFile.objects.get()))
    scene.run("transfer")
    scene.copy()
    assert LocalCopy.objects.get().status == "done"
    scene.run("transfer")
    transfer.refresh_from_db()
    assert transfer.status == "done"
