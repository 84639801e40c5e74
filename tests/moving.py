"""Files with content on marked roots, and the agent and the mover until nothing moves any more."""

from __future__ import annotations

import zlib
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db.models import F

from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from brokerage.feeds.storage_roots import put_mark
from brokerage.ledger.transfers.asking import ask
from brokerage.models import LocalCopy, StorageEndpoint, Transfer
from brokerage.mover.process import Mover
from brokerage.rules.transfers.wishes import PRODUCTION_INPUT, FileWish
from tests.builders import grid
from workqueues.models import CatalogueDataset, CatalogueFile, Replica
from workqueues.rules.jobs.file_names import copy_path


def marked_grid(folder: Path, *names: str) -> None:
    """Sites with a marked root each: ALPHA has the endpoint ALPHA_DISK at `folder/ALPHA`."""
    grid(*names, path=str(folder))
    for name in names:
        (folder / name).mkdir()
        put_mark(f"{name}_DISK", folder / name)
    StorageEndpoint.objects.update(mark=".gridbroker-storage", root_state="up")
    set_override("transfers", "UPKEEP", 0, who="test", why="look at once")


def stored_files(
    folder: Path, contents: list[bytes], *places: str, dataset: str = "d", lfns: list[str] | None = None
) -> list[CatalogueFile]:
    """A dataset of files with these contents, with a copy of each at these places."""
    row = CatalogueDataset.objects.create(vo="demo", name=dataset, state="closed")
    files = CatalogueFile.objects.bulk_create(
        CatalogueFile(
            dataset=row,
            lfn=lfns[n] if lfns else f"{dataset}.{n:06d}",
            fsize=len(content),
            checksum=f"{zlib.adler32(content):08x}",
        )
        for n, content in enumerate(contents)
    )
    for place in places:
        for file, content in zip(files, contents, strict=True):
            path = copy_path("", "demo", dataset, file.lfn)
            Replica.objects.create(file=file, storage=f"{place}_DISK", path=path)
            (folder / place / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / place / path).write_bytes(content)
    return files


def wanted(file: CatalogueFile, to: str = "BETA", **more: Any) -> FileWish:
    """A wish of a dataset's owner for a file at a place."""
    plain = FileWish(file.id, f"{to}_DISK", "dataset", PRODUCTION_INPUT, "demo", owner="ada", dataset_id=1)
    return plain._replace(**more)


def asked(*wishes: FileWish) -> list[Transfer]:
    """Transfers that meet the wishes."""
    ids = ask(wishes, "test")
    return [Transfer.objects.get(id=id_) for id_ in ids if id_ is not None]


def copy_all(mover: Mover) -> None:
    """The mover works until nothing is left for it, and until the copies under way are through: how long that takes depends on
    the disk and on what else the machine does.
    """
    while mover.round() or mover._lanes.held:
        pass


def move_all(mover: Mover | None = None, rounds: int = 40) -> None:
    """Agent and mover in turn, until nothing is under way and nothing is due. Rests are cut short."""
    mover = mover or Mover()
    for _ in range(rounds):
        run_agent("transfer", looked=True)
        copy_all(mover)
        open_ones = Transfer.objects.filter(ended_at=None)
        if not open_ones.exists() and not LocalCopy.objects.exists():
            return
        end_rests()


def end_rests() -> None:
    """Time goes by until all that rests is due."""
    Transfer.objects.filter(next_at__isnull=False).update(next_at=F("next_at") - timedelta(days=1))


def copy_at(folder: Path, place: str, file: CatalogueFile) -> Path:
    """Where a copy of a file lies, or would."""
    return folder / place / copy_path("", "demo", file.dataset.name, file.lfn)


def parts(folder: Path) -> list[Path]:
    """Unfinished files that are left anywhere."""
    return sorted(folder.rglob("*.part"))
