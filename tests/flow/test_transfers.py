"""A file that is wished somewhere gets there: agent, backend `local` and mover, with directories as storage."""

from __future__ import annotations

from pathlib import Path

import pytest

from brokerage.models import LocalCopy, Transfer, TransferChange, TransferLink, TransferWish
from tests.moving import asked, copy_at, marked_grid, move_all, parts, stored_files, wanted
from workqueues.models import Replica

pytestmark = pytest.mark.django_db


def test_a_wished_file_gets_to_its_place_whole(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    small, large, empty = stored_files(tmp_path, [b"small", b"large" * 700_000, b""], "ALPHA")
    transfers = asked(wanted(small), wanted(large), wanted(empty))
    move_all()
    for file, content in ((small, b"small"), (large, b"large" * 700_000), (empty, b"")):
        assert copy_at(tmp_path, "BETA", file).read_bytes() == content
        assert Replica.objects.get(file=file, storage="BETA_DISK").state == "available"
    history = TransferChange.objects.filter(transfer_id=transfers[0].id).order_by("id").values_list("new", flat=True)
    assert list(history) == ["queued", "submitting", "submitted", "done"]
    assert not TransferWish.objects.filter(closed_at=None).exists()
    assert not LocalCopy.objects.exists() and not parts(tmp_path)


def test_names_with_every_hostile_character_are_moved(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    names = ["-rf", "a b\n'\"\\$(x);", "é" * 125, "x" * 250, "..a", ".part", "%2e%2e", "\u202e\x7f"]
    files = stored_files(tmp_path, [name.encode() for name in names], "ALPHA", lfns=names)
    asked(*map(wanted, files))
    move_all()
    assert [copy_at(tmp_path, "BETA", file).read_bytes() for file in files] == [name.encode() for name in names]


def test_a_name_that_leads_out_of_the_storage_is_refused(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    (file,) = stored_files(tmp_path, [b"x"], "ALPHA")
    file.lfn = "../../outside"
    file.save()
    (transfer,) = asked(wanted(file))
    move_all()
    transfer.refresh_from_db()
    assert (transfer.status, transfer.reason) == ("failed", "refused")
    assert not (tmp_path / "outside").exists()


def test_a_file_that_stands_there_already_is_done_and_another_one_is_kept(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    same, other = stored_files(tmp_path, [b"same", b"other"], "ALPHA")
    for file, content in ((same, b"same"), (other, b"OTHER")):
        copy_at(tmp_path, "BETA", file).parent.mkdir(parents=True, exist_ok=True)
        copy_at(tmp_path, "BETA", file).write_bytes(content)
    there, taken = asked(wanted(same), wanted(other))
    move_all()
    there.refresh_from_db()
    taken.refresh_from_db()
    assert there.status == "done"
    assert (taken.status, taken.reason) == ("failed", "refused")
    assert copy_at(tmp_path, "BETA", other).read_bytes() == b"OTHER"


def test_links_count_what_became_of_their_attempts(tmp_path: Path) -> None:
    marked_grid(tmp_path, "ALPHA", "BETA")
    asked(*map(wanted, stored_files(tmp_path, [b"1", b"2"], "ALPHA")))
    move_all()
    link = TransferLink.objects.get()
    assert (link.source_id, link.destination_id, link.n_done, link.n_failed) == ("SITE_ALPHA", "SITE_BETA", 2, 0)
    assert not Transfer.objects.exclude(status="done").exists()
