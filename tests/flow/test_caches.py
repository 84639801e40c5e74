"""Cache copies go when nobody needs them, and only then: their files are removed, and no last copy ever is."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from django.db.models import F

from broker_site.foundation.agency.models import Agent
from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import set_override
from broker_site.foundation.kernel.clock import now
from brokerage.agents import evict as evicting
from brokerage.ledger.transfers.asking import ask
from brokerage.ledger.transfers.cached_copies import keep_copies
from brokerage.ledger.transfers.caches import claim_removals, give_back, mark_expired, note_removed
from brokerage.ledger.transfers.ends import finish
from brokerage.ledger.transfers.moves import TransferMove
from brokerage.models import ComputingQueue, Job, ReplicaChange, StorageEndpoint, Transfer
from brokerage.pilot.storage_root import StorageRoot
from brokerage.rules.transfers.wishes import PRODUCTION_INPUT, FileWish
from brokerage.transfers import local
from tests.builders import catalogue_dataset, grid, reading, submitted
from tests.flow.steps import mark_storages, run_agents, run_jobs
from workqueues.models import CatalogueFile, Dataset, Replica

pytestmark = pytest.mark.django_db

CACHE, ORIGIN = "BETA_DISK", "ALPHA_DISK"
WEEK_S = 7 * 86400.0


@pytest.fixture
def roots(tmp_path: Path) -> Path:
    """Four files at ALPHA, with cache copies at BETA that were used one hour after the other, the last one a day ago."""
    grid("ALPHA", "BETA", path=str(tmp_path))
    mark_storages(tmp_path)
    catalogue_dataset("dd", 4, storage=ORIGIN)
    for i, file in enumerate(CatalogueFile.objects.order_by("id")):
        cached(tmp_path, file, days=1 + (4 - i) / 24)
        (tmp_path / "ALPHA" / file.lfn).write_bytes(b"x" * file.fsize)
    return tmp_path


def cached(folder: Path, file: CatalogueFile, *, days: float, storage: str = CACHE, **more: object) -> Replica:
    """A cache copy of the file that was last used so many days ago."""
    path = folder / storage.removesuffix("_DISK") / "demo" / "dd" / file.lfn
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * file.fsize)
    used = now() - timedelta(days=days)
    return Replica.objects.create(
        file=file, storage=storage, path=f"demo/dd/{file.lfn}", kind="cache", last_used=used, **more
    )  # fmt: skip


def expire(**which: object) -> None:
    Replica.objects.filter(kind="cache", **which).update(keep_until=now() - timedelta(minutes=1))


def there(folder: Path, name: str = "BETA") -> list[str]:
    """The files at a storage."""
    return sorted(path.name for path in (folder / name).rglob("dd.*"))


def evict() -> str:
    """Run the agent: what it could not work on."""
    run_agent("evict", looked=True)
    return Agent.objects.values_list("left_out", flat=True).get(name="evict")


def wish(file: CatalogueFile, job: int = 1) -> FileWish:
    return FileWish(file.id, CACHE, "input", PRODUCTION_INPUT, "demo", owner="ada", job_id=job)


def test_copies_whose_time_is_over_are_removed_and_it_is_told(roots: Path) -> None:
    first, second, *_ = CatalogueFile.objects.order_by("id")
    expire(file__in=[first, second])
    assert evict() == ""
    assert there(roots) == ["dd.000002", "dd.000003"]
    assert Replica.objects.filter(storage=CACHE).count() == 2
    told = ReplicaChange.objects.filter(file_id=first.id).order_by("id").values_list("storage", "what", "who")
    assert list(told) == [(CACHE, "deleting", "agent:evict"), (CACHE, "removed", "agent:evict")]
    assert there(roots, "ALPHA") == ["dd.000000", "dd.000001", "dd.000002", "dd.000003"]


def test_where_space_is_short_the_longest_unused_copies_go_and_no_more_than_needed(
    roots: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = evicting.look_at
    monkeypatch.setattr(evicting, "look_at", lambda root: look(root)._replace(free_gb=100 - 1500e-9, size_gb=5000.0))
    set_override("transfers", "WATERMARK", 100.0, who="user:ada", why="test")
    StorageEndpoint.objects.update(root_state="up")
    evict()
    assert there(roots) == ["dd.000002", "dd.000003"], "two of 1000 bytes make up for 1500"


def test_nothing_goes_for_space_where_there_is_enough(roots: Path) -> None:
    set_override("transfers", f"WATERMARK_{CACHE}", 0.0, who="user:ada", why="test")
    evict()
    assert len(there(roots)) == 4


def test_an_own_watermark_of_an_endpoint_holds_there_alone(roots: Path) -> None:
    set_override("transfers", "WATERMARK", 0.0, who="user:ada", why="test")
    set_override("transfers", f"WATERMARK_{CACHE}", 1e9, who="user:ada", why="test")
    evict()
    assert there(roots) == []
    assert len(there(roots, "ALPHA")) == 4


def test_the_last_copy_that_can_be_read_is_kept(roots: Path) -> None:
    expire()
    first, second, third, _ = CatalogueFile.objects.order_by("id")
    Replica.objects.filter(file=first, storage=ORIGIN).update(state="bad")
    Replica.objects.filter(file=second, storage=ORIGIN).delete()
    Replica.objects.filter(file=third, storage=ORIGIN).update(state="deleting", removal_at=now() + timedelta(hours=1))
    evict()
    assert there(roots) == ["dd.000000", "dd.000001", "dd.000002"]
    Replica.objects.filter(file=first, storage=ORIGIN).update(state="available")
    StorageEndpoint.objects.filter(name=ORIGIN).update(root_state="down")
    evict()
    assert "dd.000000" in there(roots), "the other copy is at a storage that is down"


def test_of_two_cache_copies_without_an_origin_one_is_kept(roots: Path) -> None:
    file = CatalogueFile.objects.order_by("id")[0]
    cached(roots, file, days=3, storage="GAMMA_DISK")
    grid_gamma(roots)
    Replica.objects.filter(file=file, kind="origin").delete()
    expire(file=file)
    evict()
    evict()
    assert Replica.objects.filter(file=file).count() == 1


def grid_gamma(folder: Path) -> None:
    """A third endpoint."""
    StorageEndpoint.objects.create(name="GAMMA_DISK", site_id="SITE_ALPHA", path=str(folder / "GAMMA"))
    mark_storages(folder)


def test_a_copy_that_a_job_reads_is_kept_until_the_job_has_ended_and_then_for_its_lifetime(roots: Path) -> None:
    Replica.objects.filter(kind="origin").update(storage="GAMMA_DISK")
    grid_gamma(roots)
    ComputingQueue.objects.filter(name="ALPHA").update(status="offline")
    submitted(reading("t", "dd", nFilesPerJob=4))
    run_agents()
    expire()
    evict()
    assert len(there(roots)) == 4
    assert not Replica.objects.filter(kind="cache", keep_until__lt=now() + timedelta(days=6)).exists()
    assert run_jobs(ComputingQueue.objects.get(name="BETA")) == 1
    Replica.objects.filter(kind="cache").update(keep_until=F("keep_until") - timedelta(days=8))
    evict()
    assert there(roots) == []


def test_a_copy_that_an_open_job_may_read_is_kept_until_it_reads_elsewhere(roots: Path) -> None:
    submitted(reading("t", "dd", nFilesPerJob=4, binding="late"))
    run_agents(names=("refine", "feed", "assign", "generate"))
    assert Job.objects.get().computing_queue is None
    expire()
    keep_copies(WEEK_S)
    assert not Replica.objects.filter(kind="cache", last_used__lt=now() - timedelta(hours=1)).exists(), "they count as used now"
    expire()
    evict()
    assert len(there(roots)) == 4
    assert run_jobs(ComputingQueue.objects.get(name="ALPHA")) == 1
    run_agents()
    expire()
    evict()
    assert there(roots) == []


def test_a_copy_from_which_a_transfer_reads_is_kept(roots: Path) -> None:
    grid_gamma(roots)
    file = CatalogueFile.objects.order_by("id")[0]
    StorageEndpoint.objects.filter(name=ORIGIN).update(root_state="down", status={})
    ask([wish(file)._replace(destination="GAMMA_DISK")], "test")
    assert Transfer.objects.get().source == CACHE
    StorageEndpoint.objects.filter(name=ORIGIN).update(root_state="up")
    expire()
    evict()
    assert there(roots) == ["dd.000000"]


def test_who_wishes_a_copy_before_its_removal_begins_gets_it_back(roots: Path) -> None:
    file = CatalogueFile.objects.order_by("id")[0]
    expire(file=file)
    assert mark_expired(now(), WEEK_S, "test", 10).marked == 1
    (transfer,) = ask([wish(file)], "test")
    assert transfer is not None, "a copy that is chosen is not told of any more"
    evict()
    assert "dd.000000" in there(roots)
    assert Replica.objects.filter(file=file, storage=CACHE, state="available", keep_until__gt=now() + timedelta(days=6)).exists()
    assert Transfer.objects.values_list("status", "reason").get() == ("done", "seen")


def test_who_wishes_a_copy_after_its_removal_began_has_it_brought_anew(roots: Path) -> None:
    file = CatalogueFile.objects.order_by("id")[0]
    expire(file=file)
    mark_expired(now(), WEEK_S, "test", 10)
    (copy,) = claim_removals([CACHE], 60, 10)
    ask([wish(file)], "test")
    assert give_back([CACHE], WEEK_S, "test", 10) == 0
    assert note_removed([copy], "test") == 1
    assert Transfer.objects.values_list("status", "source").get() == ("queued", ORIGIN)
    assert not Replica.objects.filter(file=file, storage=CACHE).exists()


def test_a_removal_that_was_killed_is_done_by_a_later_run(roots: Path) -> None:
    expire()
    mark_expired(now(), WEEK_S, "test", 10)
    copies = claim_removals([CACHE], 60, 10)
    (roots / "BETA" / copies[0].path).unlink()
    evict()
    assert len(there(roots)) == 3, "the claim of the one that was killed holds"
    Replica.objects.filter(state="deleting").update(removal_at=F("removal_at") - timedelta(minutes=2))
    assert evict() == ""
    assert there(roots) == []
    assert note_removed(copies, "test") == 0, "it wakes up too late"
    assert ReplicaChange.objects.filter(what="removed").count() == 4


def test_copies_that_somebody_else_gave_up_are_removed_whatever_they_are(roots: Path) -> None:
    file = CatalogueFile.objects.order_by("id")[0]
    Replica.objects.filter(file=file).update(state="deleting")
    evict()
    assert not Replica.objects.filter(file=file).exists()
    assert "dd.000000" not in there(roots) + there(roots, "ALPHA")


def test_a_file_that_two_entries_of_the_catalogue_share_stays_while_one_is_kept(roots: Path) -> None:
    twin = catalogue_dataset("other", 1, storage=ORIGIN).files.get()
    CatalogueFile.objects.filter(id=twin.id).update(lfn="dd.000000")
    Replica.objects.filter(file__lfn="dd.000000", storage=ORIGIN).exclude(file=twin).update(state="deleting")
    evict()
    assert "dd.000000" in there(roots, "ALPHA")
    assert not Replica.objects.filter(storage=ORIGIN, file__lfn="dd.000000").exclude(file=twin).exists()


def test_at_a_storage_that_is_away_nothing_is_taken_for_removed(roots: Path) -> None:
    expire()
    (roots / "BETA").rename(roots / "away")
    (roots / "BETA").mkdir()
    assert "storage BETA_DISK is down" in evict()
    assert Replica.objects.filter(storage=CACHE, state="deleting").count() == 4
    (roots / "BETA").rmdir()
    (roots / "away").rename(roots / "BETA")
    Replica.objects.filter(state="deleting").update(removal_at=now() - timedelta(minutes=1))
    evict()
    assert there(roots) == []


@pytest.mark.parametrize("path", ["../ALPHA/dd.000000", "/etc/hostname", ".gridbroker-storage", "a//b", "link/dd.000000", "demo"])
def test_nothing_outside_of_the_copies_is_removed(roots: Path, path: str) -> None:
    (roots / "BETA" / "link").symlink_to(roots / "ALPHA")
    Replica.objects.filter(storage=CACHE, file__lfn="dd.000000").update(path=path, state="deleting")
    assert "storage BETA_DISK" in evict()
    assert (roots / "BETA" / ".gridbroker-storage").exists()
    assert len(there(roots, "ALPHA")) == 4
    assert Replica.objects.filter(storage=CACHE, state="deleting").count() == 1


def test_a_storage_that_hangs_holds_up_no_other(roots: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grid_gamma(roots)
    for file in CatalogueFile.objects.order_by("id"):
        cached(roots, file, days=2, storage="GAMMA_DISK")
    back, remove = threading.Event(), local.remove_copies

    def hangs(root: StorageRoot, paths: Sequence[str], patience_s: float) -> list[str]:
        if root.name == "GAMMA_DISK":
            back.wait(30)
        return remove(root, paths, patience_s)

    monkeypatch.setattr(local, "remove_copies", hangs)
    set_override("transfers", "REMOVAL_PATIENCE", 0.3, who="user:ada", why="test")
    expire()
    Replica.objects.filter(storage="GAMMA_DISK").update(state="deleting")
    assert "storage GAMMA_DISK does not answer" in evict()
    assert there(roots) == []
    assert len(there(roots, "GAMMA")) == 4
    back.set()


@pytest.mark.parametrize(("attributes", "days"), [("", 7), ("manytime", None), ("nosplit,manytime", None)])
def test_a_copy_of_an_input_that_is_read_once_has_a_lifetime(roots: Path, attributes: str, days: int | None) -> None:
    Replica.objects.filter(kind="cache").delete()
    submitted(reading("t", "dd"))
    run_agents(1, names=("refine", "feed"))
    Dataset.objects.filter(type="input").update(attributes=attributes)
    file = CatalogueFile.objects.order_by("id")[0]
    (transfer,) = ask([wish(file)._replace(dataset_id=Dataset.objects.get(type="input").id)], "test")
    assert transfer is not None
    finish([TransferMove(transfer)], "test")
    copy = Replica.objects.get(file=file, storage=CACHE)
    assert copy.kind == "cache"
    assert (copy.keep_until and round((copy.keep_until - now()) / timedelta(days=1))) == days
