"""Storage endpoints that go away under a pilot: nothing is said of their files, nothing is written where they ought to be."""

from __future__ import annotations

import os
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest

from brokerage.pilot.copying import Sum, store
from brokerage.pilot.guardian import PayloadOutcome, Program
from brokerage.pilot.job import Failure, Input, Output, Source
from brokerage.pilot.journal import Journal
from brokerage.pilot.payload import describe
from brokerage.pilot.stage_in import stage_in
from brokerage.pilot.stage_out import stage_out
from brokerage.pilot.storage_root import MARKER, StorageDown, StorageRoot
from tests.pilot.conftest import Slot, until
from tests.pilot.peer import Peer

PROGRAM = Program([], "", {}, "", "", 0, 0, 0)


def mark(root: Path, name: str = "DISK") -> None:
    (root / MARKER).write_text(name + "\n")


def marked(slot: Slot, lfn: str, **more: Any) -> dict[str, Any]:
    """An output of the wire at the marked storage."""
    return {"lfn": lfn, "storage": "DISK", "path": str(slot.storage / lfn), "type": "output", "mark": MARKER, **more}


def covered(slot: Slot, how: str) -> Path:
    """Move the storage away and leave what an operator may find in its place; where it is now."""
    away = slot.base / "away"
    slot.storage.rename(away)
    if how == "bare mount point":
        slot.storage.mkdir()
    elif how == "plain file":
        slot.storage.write_text("not a folder\n")
    elif how == "storage of another name":
        slot.storage.mkdir()
        mark(slot.storage, "OTHER")
    return away


FAULTS = ("nothing", "bare mount point", "plain file", "storage of another name")


@pytest.mark.parametrize("how", FAULTS)
def test_while_a_storage_is_away_nothing_is_written_and_no_input_is_called_missing(slot: Slot, peer: Peer, how: str) -> None:
    slot.program("copy", "cat in > out")
    mark(slot.storage)
    entry = slot.stored("in", b"content")
    entry["sources"][0] |= {"root": str(slot.storage), "mark": MARKER}
    away = covered(slot, how)
    slot.program("write", "echo new > out")
    reads = peer.offer("copy", inputs=[entry])
    writes = peer.offer("write", outputs=[marked(slot, "out", path=str(slot.storage / "sub" / "out"))])
    slot.run()
    for job in (reads, writes):
        report = slot.report(job)
        assert report["error"]["code"] == "STORAGE_DOWN"
        assert "storage DISK is down" in report["error"]["message"]
        assert (report["down_storages"], report["missing_inputs"], report["corrupt_inputs"]) == (["DISK"], [], [])
        assert report["outputs"] == []
    left = [path.name for path in slot.storage.iterdir()] if slot.storage.is_dir() else []
    assert left == ([MARKER] if how == "storage of another name" else []), "nothing lies where the storage ought to be"
    assert sorted(path.name for path in away.iterdir()) == [MARKER, "in"]


def test_a_root_that_was_never_marked_is_never_made_either(slot: Slot, peer: Peer) -> None:
    slot.program("write", "echo new > out")
    slot.storage.rmdir()
    job = peer.offer("write", out=["out"])
    slot.run()
    assert slot.report(job)["error"]["code"] == "STORAGE_DOWN"
    assert not slot.storage.exists()


def test_an_input_with_a_copy_elsewhere_is_read_from_there(slot: Slot, peer: Peer) -> None:
    slot.program("copy", "cat in > out")
    entry = slot.stored("in", b"content")
    gone = {"storage": "FAR", "path": "/nowhere/far/in", "root": "/nowhere/far", "mark": MARKER}
    entry["sources"].insert(0, gone)
    job = peer.offer("copy", inputs=[entry], out=["out"])
    lone = peer.offer("copy", inputs=[{**entry, "sources": [gone]}, {**entry, "lfn": "other", "sources": []}], out=["out2"])
    slot.run()
    assert slot.report(job)["status"] == "finished"
    report = slot.report(lone)
    assert (report["error"]["code"], report["down_storages"], report["missing_inputs"]) == ("STORAGE_DOWN", ["FAR"], ["other"])


def test_outputs_of_a_pilot_that_died_stay_in_the_journal_while_their_storage_is_away(slot: Slot, peer: Peer) -> None:
    slot.program("write", "echo new > out")
    mark(slot.storage)
    job = peer.offer("write", outputs=[marked(slot, "out")])
    peer.hang.add("report")
    pilot = slot.start()
    until((slot.storage / "out").exists)
    pilot.kill()
    pilot.wait()
    until(lambda: not peer._live(peer.jobs[job]), 10)
    away = covered(slot, "bare mount point")
    peer.released.set()
    peer.hang.clear()
    slot.run()
    assert len(list(slot.journal.iterdir())) == 1, "what cannot be looked for now is looked for later"
    slot.storage.rmdir()
    away.rename(slot.storage)
    slot.run()
    assert slot.files() == [MARKER]
    assert list(slot.journal.iterdir()) == []


def test_a_root_that_goes_away_while_it_is_written_to_is_found_out_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    mark(tmp_path / "root")
    root = StorageRoot("DISK", tmp_path / "root", MARKER)
    with pytest.raises(StorageDown, match="another folder than a moment ago"), root.opened() as opened:
        (tmp_path / "root").rename(tmp_path / "away")
        (tmp_path / "root").mkdir()
        (opened / "file").write_text("x")
    assert (tmp_path / "away" / "file").exists()
    assert list((tmp_path / "root").iterdir()) == []


def test_a_canary_marks_a_root_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "VERSION").write_text("7")
    assert StorageRoot("DISK", tmp_path, "canary:1:VERSION").fault() == ""
    assert "has not the size that its mark says" in StorageRoot("DISK", tmp_path, "canary:2:VERSION").fault()
    assert "cannot be read: No such file" in StorageRoot("DISK", tmp_path, "canary:1:sub/VERSION").fault()


def test_an_output_is_read_back_before_it_counts_as_written(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"content")
    calls = 0

    def check() -> None:
        """Damage the copy once it is written whole: between the call before the last chunk and that before reading back."""
        nonlocal calls
        calls += 1
        if calls == 3:
            target.write_bytes(b"kontent")

    fd = os.open(source, os.O_RDONLY)
    with pytest.raises(OSError, match="read back are 7 bytes of"):
        store(fd, target, check)
    os.lseek(fd, 0, os.SEEK_SET)
    assert store(fd, tmp_path / "good", lambda: None) == Sum(7, f"{zlib.adler32(b'content'):08x}")
    os.close(fd)


def test_a_payload_that_fills_the_disk_is_told_so(slot: Slot, peer: Peer) -> None:
    slot.program("fill", "head -c 1 /dev/zero > /dev/full")
    job = peer.offer("fill", out=["out"])
    slot.run()
    error = slot.report(job)["error"]
    assert error["code"] == "PAYLOAD_DISK"
    assert error["message"].startswith("no space left on the disk of the worker node (exit code ")
    silent = describe(PayloadOutcome("exit", 120), PROGRAM, "", free=0)
    assert silent is not None and silent.code == "PAYLOAD_DISK"
    other = describe(PayloadOutcome("exit", 120), PROGRAM, "", free=10**9)
    assert other is not None and other.code == "PAYLOAD_EXIT"


def no_check() -> None:
    """The lease holds."""


def test_an_input_that_cannot_even_be_looked_for_does_not_hide_that_the_storage_is_down(tmp_path: Path) -> None:
    """After a first bad input the rest is looked for, which a storage in trouble answers with errors of many kinds."""
    root = StorageRoot("DISK", tmp_path, MARKER)
    inputs = [Input(lfn, None, None, (Source(tmp_path / lfn, root),)) for lfn in ("a", "b" * 300)]
    with pytest.raises(Failure) as failed:
        stage_in(inputs, tmp_path, no_check)
    assert (failed.value.code, failed.value.down, failed.value.missing) == ("STORAGE_DOWN", ("DISK",), ())
    mark(tmp_path)
    with pytest.raises(Failure) as failed:
        stage_in(inputs, tmp_path, no_check)
    assert (failed.value.code, failed.value.missing) == ("INPUT_MISSING", ("a",))
    assert "File name too long" in failed.value.message


@pytest.mark.parametrize("calls", [1, 2, 6], ids=["before the folder is made", "while it is copied", "before it gets its name"])
def test_an_output_that_cannot_be_written_since_the_storage_broke_away_waits_for_it(tmp_path: Path, calls: int) -> None:
    root = StorageRoot("DISK", tmp_path / "root", MARKER)
    root.path.mkdir()
    mark(root.path)
    (tmp_path / "out").write_text("x")
    left = calls

    def check() -> None:
        nonlocal left
        left -= 1
        if not left:
            shutil.rmtree(root.path)

    journal = Journal(tmp_path / "journal", "1.1")
    with pytest.raises(Failure) as failed:
        stage_out([Output("out", "DISK", root.path / "sub" / "out", False, False, "", root)], tmp_path, "1.1", journal, check)
    journal.leave()
    assert (failed.value.code, failed.value.down) == ("STORAGE_DOWN", ("DISK",))
    assert not root.path.exists()
