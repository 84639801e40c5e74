"""What goes wrong while a file is brought: other sources, full and absent storage, kills, and wishes that are given up."""

from __future__ import annotations

import errno
import os
import threading
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.db.models import F
from django.db.models.functions import Now

from broker_site.foundation.agency.run import run_agent
from broker_site.foundation.gdpconfig import component, set_override
from brokerage.ledger.transfers.releasing import release
from brokerage.models import LocalCopy, StorageEndpoint, Transfer, TransferChange, TransferLink, TransferWish
from brokerage.mover import reach
from brokerage.mover.bandwidth import Bandwidth
from brokerage.mover.batch import Task, copy_batch
from brokerage.mover.files import part_name
from brokerage.mover.process import Mover
from brokerage.transfers.choice import backends
from brokerage.transfers.commands import cancel_transfers
from brokerage.transfers.local import Local
from brokerage.transfers.port import StoredCopy
from tests.moving import asked, copy_all, copy_at, end_rests, marked_grid, move_all, parts, stored_files, wanted
from workqueues.models import Replica

pytestmark = pytest.mark.django_db

LARGE = b"content" * 200_000


def step(mover: Mover | None = None) -> None:
    """The agent once, and a mover until it has nothing more to do."""
    run_agent("transfer", looked=True)
    copy_all(mover or Mover())
    run_agent("transfer", looked=True)


@pytest.mark.parametrize("content", [b"content", LARGE], ids=["small", "large"])
@pytest.mark.parametrize("harm", ["gone", "other content", "other size", "a folder"])
def test_a_source_that_fails_gives_way_to_the_next(tmp_path: Path, harm: str, content: bytes) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA", "GAMMA")
    (file,) = stored_files(tmp_path, [content], "ALPHA", "GAMMA")
    source = copy_at(tmp_path, "ALPHA", file)
    source.unlink()
    if harm == "a folder":
        source.mkdir()
    elif harm != "gone":
        source.write_bytes(content.swapcase() if harm == "other content" else content + b"and more")
    (transfer,) = asked(wanted(file))
    assert transfer.source == "ALPHA_DISK"
    move_all()
    transfer.refresh_from_db()
    assert (transfer.status, transfer.source, transfer.attempt) == ("done", "GAMMA_DISK", 2)
    assert copy_at(tmp_path, "BETA", file).read_bytes() == content
    assert not parts(tmp_path)


def test_a_large_file_is_brought_where_the_kernel_cannot_copy_and_read_back_from_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(*_: object) -> int:
        raise OSError(errno.EINVAL, "no such operation here")

    marked_grid(tmp_path, "ALPHA", "BETA")
    set_override("transfers", "READ_BACK", "disk", who="test", why="disks are doubted")
    monkeypatch.setattr(os, "sendfile", cannot)
    (file,) = stored_files(tmp_path, [LARGE], "ALPHA")
    (transfer,) = asked(wanted(file))
    move_all()
    transfer.refresh_from_db()
    assert (transfer.status, transfer.attempt) == ("done", 1)
    assert copy_at(tmp_path, "BETA", file).read_bytes() == LARGE


def test_what_was_written_wrongly_is_found_when_it_is_read_back_and_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(part: int, source: int, at: int, wanted: int) -> int:
        return os.write(part, os.pread(source, wanted, at).swapcase())

    marked_grid(tmp_path, "ALPHA", "BETA")
    (file,) = stored_files(tmp_path, [LARGE], "ALPHA")
    (transfer,) = asked(wanted(file))
    with monkeypatch.context() as patch:
        patch.setattr(os, "sendfile", wrong)
        step()
    assert not copy_at(tmp_path, "BETA", file).exists()
    assert not parts(tmp_path)
    assert Replica.objects.get().state == "available"
    move_all()
    transfer.refresh_from_db()
    assert (transfer.status, transfer.attempt) == ("done", 2)
    assert TransferChange.objects.filter(why__startswith="BETA_DISK: what was read back is not what was written").exists()
    assert copy_at(tmp_path, "BETA", file).read_bytes() == LARGE


def test_where_links_do_not_exist_a_mover_that_was_overtaken_gives_no_half_file_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    (file,) = stored_files(tmp_path, [LARGE], "ALPHA")
    (transfer,) = asked(wanted(file))
    real = copy_at(tmp_path, "BETA", file)

    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    def overtaken(source: str, target: str, **more: int) -> None:
        patch.setattr(os, "rename", rename)
        part = real.parent / source
        part.unlink()
        part.write_bytes(b"half of what another mover wri")
        rename(source, target, **more)

    rename = os.rename
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", no_links)
        patch.setattr(os, "rename", overtaken)
        step()
        assert not real.exists()
        move_all()
    transfer.refresh_from_db()
    assert (transfer.status, transfer.attempt) == ("done", 2)
    assert real.read_bytes() == LARGE


def test_a_file_that_is_damaged_everywhere_is_not_brought_and_its_copies_are_bad(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    (file,) = stored_files(tmp_path, [b"content"], "ALPHA")
    copy_at(tmp_path, "ALPHA", file).write_bytes(b"CONTENT")
    (transfer,) = asked(wanted(file))
    move_all()
    transfer.refresh_from_db()
    assert (transfer.status, transfer.reason) == ("failed", "no_source")
    assert Replica.objects.get().state == "bad"
    assert not copy_at(tmp_path, "BETA", file).exists()


def test_a_storage_without_its_mark_is_waited_for_and_nothing_is_written_there(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    (file,) = stored_files(tmp_path, [b"content"], "ALPHA")
    (transfer,) = asked(wanted(file))
    (tmp_path / "BETA").rename(tmp_path / "away")
    (tmp_path / "BETA").mkdir()
    step()
    transfer.refresh_from_db()
    assert (transfer.status, transfer.reason) == ("queued", "dst_down")
    assert transfer.next_at is not None
    assert not list((tmp_path / "BETA").iterdir())
    (tmp_path / "BETA").rmdir()
    (tmp_path / "away").rename(tmp_path / "BETA")
    move_all()
    assert copy_at(tmp_path, "BETA", file).read_bytes() == b"content"


def test_a_storage_that_the_grid_knows_to_be_down_or_full_is_not_tried(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    (transfer,) = asked(wanted(stored_files(tmp_path, [b"content"], "ALPHA")[0]))
    StorageEndpoint.objects.filter(name="BETA_DISK").update(root_state="full", root_fault="1 GB is free, less than 5")
    step()
    transfer.refresh_from_db()
    assert (transfer.status, transfer.attempt, transfer.reason) == ("queued", 0, "dst_full")
    assert "1 GB is free" in transfer.message
    StorageEndpoint.objects.update(root_state="up")
    move_all()
    transfer.refresh_from_db()
    assert (transfer.status, transfer.reason) == ("done", "")


def test_a_file_for_which_there_is_no_space_is_not_begun(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    (file,) = stored_files(tmp_path, [b"content"], "ALPHA")
    (transfer,) = asked(wanted(file))
    Transfer.objects.update(bytes=10**18)
    step()
    transfer.refresh_from_db()
    assert (transfer.status, transfer.reason) == ("queued", "dst_full")
    assert not parts(tmp_path) and not copy_at(tmp_path, "BETA", file).exists()


def test_what_an_earlier_try_left_is_removed_and_begun_anew(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    (file,) = stored_files(tmp_path, [b"content"], "ALPHA")
    asked(wanted(file))
    run_agent("transfer", looked=True)
    target = copy_at(tmp_path, "BETA", file)
    target.parent.mkdir(parents=True)
    (target.parent / part_name(file.lfn)).write_bytes(b"cont")
    move_all()
    assert target.read_bytes() == b"content"
    assert not parts(tmp_path)


def test_a_killed_movers_copies_are_made_by_the_next(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    (file,) = stored_files(tmp_path, [b"content"], "ALPHA")
    (transfer,) = asked(wanted(file))
    run_agent("transfer", looked=True)
    LocalCopy.objects.update(status="copying", mover="dead", claimed_until=Now() + timedelta(hours=1))
    step()
    assert not copy_at(tmp_path, "BETA", file).exists()
    LocalCopy.objects.update(claimed_until=TransactionNow() - timedelta(seconds=1))
    move_all()
    transfer.refresh_from_db()
    assert (transfer.status, transfer.attempt) == ("done", 1)


def test_an_agent_killed_before_the_backend_heard_hands_the_same_attempt_over_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    (transfer,) = asked(wanted(stored_files(tmp_path, [b"content"], "ALPHA")[0]))
    with monkeypatch.context() as patch:
        patch.setattr(Local, "submit", _killed)
        run_agent("transfer", looked=True)
    transfer.refresh_from_db()
    assert transfer.status == "submitting"
    key = transfer.key
    run_agent("transfer", looked=True)
    assert not LocalCopy.objects.exists()
    Transfer.objects.update(claimed_until=TransactionNow() - timedelta(seconds=1))
    move_all()
    transfer.refresh_from_db()
    assert (transfer.status, transfer.attempt, transfer.key) == ("done", 1, key)


def _killed(*_: object) -> None:
    raise SystemError("killed")


def test_a_transfer_that_nobody_wants_any_more_is_cancelled_unless_it_has_begun(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    first, second, third = stored_files(tmp_path, [b"1", b"2", b"3"], "ALPHA")
    (begun,) = asked(wanted(first, role="input", job_id=1))
    run_agent("transfer", looked=True)
    set_override("transfers", "LINK_ACTIVE", 0, who="test", why="nothing more begins")
    given_up, wanted_by_other = asked(wanted(second, role="input", job_id=1), wanted(third, role="input", job_id=1))
    asked(wanted(third, role="input", job_id=2))
    release([1])
    run_agent("transfer", looked=True)
    given_up.refresh_from_db()
    wanted_by_other.refresh_from_db()
    assert (given_up.status, given_up.reason) == ("cancelled", "no_wish")
    assert wanted_by_other.status == "queued"
    assert not TransferWish.objects.filter(released=True).exists()
    step()
    begun.refresh_from_db()
    assert begun.status == "done"
    assert Replica.objects.get(file=first, storage="BETA_DISK").kind == "cache"


def test_a_cancelled_copy_leaves_nothing(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    (file,) = stored_files(tmp_path, [b"content"], "ALPHA")
    (transfer,) = asked(wanted(file))
    run_agent("transfer", looked=True)
    target = copy_at(tmp_path, "BETA", file)
    target.parent.mkdir(parents=True)
    (target.parent / part_name(file.lfn)).write_bytes(b"cont")
    assert cancel_transfers([transfer.id], "user:op", "not needed") == 1
    move_all()
    transfer.refresh_from_db()
    assert (transfer.status, transfer.reason) == ("cancelled", "operator")
    assert not target.exists() and not parts(tmp_path)


@pytest.mark.parametrize("away", ["ALPHA", "BETA"])
def test_what_a_killed_mover_left_goes_also_when_the_next_could_not_try_because_a_root_was_away(
    tmp_path: Path, away: str
) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    (file,) = stored_files(tmp_path, [b"content"], "ALPHA")
    (transfer,) = asked(wanted(file))
    run_agent("transfer", looked=True)
    killed = Mover()
    claimed = killed._claim(component("transfers"))
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemError):
        patch.setattr("brokerage.mover.batch.publish", _killed)
        copy_batch([Task(row, Bandwidth(None)) for row in claimed], lambda size, free: True)
    assert len(parts(tmp_path)) == 1
    LocalCopy.objects.update(claimed_until=TransactionNow() - timedelta(seconds=1))
    (tmp_path / away).rename(tmp_path / "away")
    step()
    (tmp_path / "away").rename(tmp_path / away)
    move_all()
    transfer.refresh_from_db()
    assert (transfer.status, transfer.attempt) == ("done", 2)
    assert copy_at(tmp_path, "BETA", file).read_bytes() == b"content"
    assert not parts(tmp_path)


def test_a_queued_transfer_that_is_cancelled_ends_at_once(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    (transfer,) = asked(wanted(stored_files(tmp_path, [b"content"], "ALPHA")[0]))
    assert cancel_transfers([transfer.id], "user:op", "not needed") == 1
    transfer.refresh_from_db()
    assert (transfer.status, transfer.reason, transfer.message) == ("cancelled", "operator", "not needed")
    assert not TransferWish.objects.filter(closed_at=None).exists()


def test_a_copy_that_its_backend_lost_is_made_by_another_attempt(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    (file,) = stored_files(tmp_path, [b"content"], "ALPHA")
    (transfer,) = asked(wanted(file))
    run_agent("transfer", looked=True)
    LocalCopy.objects.all().delete()
    Transfer.objects.update(claimed_until=TransactionNow() - timedelta(seconds=1))
    run_agent("transfer", looked=True)
    transfer.refresh_from_db()
    assert (transfer.status, transfer.reason) == ("queued", "unknown")
    move_all()
    transfer.refresh_from_db()
    assert (transfer.status, transfer.attempt) == ("done", 2)


def test_a_copy_that_is_silent_for_too_long_is_tried_again_and_the_old_one_given_up(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    (file,) = stored_files(tmp_path, [b"content"], "ALPHA")
    (transfer,) = asked(wanted(file))
    run_agent("transfer", looked=True)
    two_hours = timedelta(hours=2)
    Transfer.objects.update(status_since=F("status_since") - two_hours, claimed_until=TransactionNow() - timedelta(seconds=1))
    run_agent("transfer", looked=True)
    transfer.refresh_from_db()
    assert (transfer.status, transfer.reason) == ("queued", "timeout")
    assert LocalCopy.objects.get().cancelled
    move_all()
    transfer.refresh_from_db()
    assert (transfer.status, transfer.attempt) == ("done", 2)
    assert not LocalCopy.objects.exists() and not parts(tmp_path)


@pytest.mark.parametrize(("tape", "days", "status"), [(False, 3, "failed"), (True, 3, "queued"), (True, 8, "failed")])
def test_what_waited_too_long_is_given_up(tmp_path: Path, tape: bool, days: int, status: str) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    (transfer,) = asked(wanted(stored_files(tmp_path, [b"content"], "ALPHA")[0]))
    set_override("transfers", "LINK_ACTIVE", 0, who="test", why="nothing begins")
    Transfer.objects.update(tape=tape, created_at=F("created_at") - timedelta(days=days))
    run_agent("transfer", looked=True)
    transfer.refresh_from_db()
    assert transfer.status == status
    assert transfer.reason == ("expired" if status == "failed" else "")


def test_a_link_on_which_most_attempts_fail_gets_half_of_its_transfers_and_is_then_blocked(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    for name, value in (("LINK_JUDGED_FROM", 4), ("MAX_ATTEMPTS", 100), ("LINK_ACTIVE", 4)):
        set_override("transfers", name, value, who="test", why="sooner")
    files = stored_files(tmp_path, [str(n).encode() for n in range(8)], "ALPHA")
    asked(*map(wanted, files))
    _fail_all()
    assert TransferLink.objects.filter(halved_until__isnull=False, blocked_until=None).exists()
    end_rests()
    assert _fail_all() == 2
    assert _fail_all() == 2
    link = TransferLink.objects.get(blocked_until__isnull=False)
    assert "of the last 4 attempts from SITE_ALPHA to SITE_BETA failed" in link.blocked_why
    end_rests()
    step()
    assert not LocalCopy.objects.exists()
    assert "attempts from SITE_ALPHA" in Transfer.objects.filter(reason="link_blocked")[0].message
    TransferLink.objects.update(blocked_until=None)
    move_all()
    assert not Transfer.objects.exclude(status="done").exists()


def _fail_all() -> int:
    """Begin what is due, and let the copies fail for a reason of the link: how many."""
    run_agent("transfer", looked=True)
    n = LocalCopy.objects.count()
    LocalCopy.objects.update(status="failed", reason="unknown", message="a cable was cut", ended_at=Now())
    set_override("transfers", "LINK_ACTIVE", 0, who="test", why="nothing more begins in this run")
    run_agent("transfer", looked=True)
    set_override("transfers", "LINK_ACTIVE", 4, who="test", why="and again")
    return n


def test_a_root_that_hangs_stops_only_its_own_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA", "GAMMA")
    files = stored_files(tmp_path, [str(n).encode() for n in range(40)], "ALPHA")
    asked(*(wanted(file, to) for file in files for to in ("BETA", "GAMMA")))
    hang, hung = threading.Event(), tmp_path / "GAMMA"

    opened = reach.StorageRoot.opened

    def slow(root: reach.StorageRoot) -> object:
        if root.path == hung:
            hang.wait(60)
        return opened(root)

    monkeypatch.setattr(reach.StorageRoot, "opened", slow)
    mover = Mover()
    try:
        for _ in range(300):
            run_agent("transfer", looked=True)
            mover.round()
            if Transfer.objects.filter(destination="BETA_DISK", status="done").count() == 40:
                break
        assert Transfer.objects.filter(destination="BETA_DISK", status="done").count() == 40
        assert not Transfer.objects.filter(destination="GAMMA_DISK", status="done").exists()
    finally:
        hang.set()
    move_all(mover)
    assert not Transfer.objects.exclude(status="done").exists()


def test_deleted_copies_are_gone_and_those_at_a_storage_that_is_down_are_told(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    (file,) = stored_files(tmp_path, [b"content"], "ALPHA", "BETA")
    path = Replica.objects.get(storage="ALPHA_DISK").path
    (tmp_path / "BETA").rename(tmp_path / "away")
    there, not_there, away = StoredCopy("ALPHA_DISK", path), StoredCopy("ALPHA_DISK", f"{uuid4()}"), StoredCopy("BETA_DISK", path)
    outside = StoredCopy("ALPHA_DISK", "../away/.gridbroker-storage")
    left = backends()["local"].delete([there, not_there, away, outside])
    assert set(left) == {away, outside}
    assert not copy_at(tmp_path, "ALPHA", file).exists()
    assert (tmp_path / "away" / path).exists() and (tmp_path / "away" / ".gridbroker-storage").exists()
