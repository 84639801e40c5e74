"""Pilots that share no directory with their storage: inputs and outputs by signed addresses of a real storage server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brokerage.pilot.storage_root import MARKER
from tests.pilot.conftest import Slot, until
from tests.pilot.peer import Peer, adler
from tests.storage_server.serving import Serving

pytestmark = pytest.mark.servers


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    serving = Serving(tmp_path)
    yield serving
    serving.stop()


def stored(server: Serving, name: str, content: bytes, **source: Any) -> dict[str, Any]:
    """A file at the server, as an input of the wire."""
    (server.root / name).write_bytes(content)
    sources = [{"storage": server.name, "url": server.url("GET", name), **source}]
    return {"lfn": name, "size": len(content), "checksum": adler(content), "sources": sources, "dataset": "in"}


def to(server: Serving, lfn: str, job: int = 100, **more: Any) -> dict[str, Any]:
    """An output of the wire that is written to the server."""
    urls = {
        "url": server.url("PUT", f"d/{lfn}", job=job, epoch=1),
        "remove_url": server.url("DELETE", f"d/{lfn}", job=job, epoch=1),
    }
    return {"lfn": lfn, "storage": server.name, "type": "output", **urls, **more}


def test_a_job_reads_and_writes_where_it_sees_no_directory(slot: Slot, peer: Peer, server: Serving) -> None:
    slot.program("double", "cat in in > out")
    content = b"content" * 100_000
    job = peer.offer(
        "double", inputs=[stored(server, "in", content)], outputs=[to(server, "out"), to(server, "log.tgz", type="log")]
    )
    assert slot.run() == 0
    report = slot.report(job)
    assert report["status"] == "finished", report["error"]
    assert report["outputs"][0] == {"lfn": "out", "size": 1_400_000, "checksum": adler(content * 2), "storage": "DISK"}
    assert (server.root / "d" / "out").read_bytes() == content * 2
    assert server.files() == ["d/log.tgz", "d/out", "in"]
    assert list(slot.journal.iterdir()) == []
    assert "sig=" not in (slot.base / "pilot.err").read_text(), "an address is a secret"


def test_a_directory_is_used_where_it_is_there_and_the_server_where_it_is_not(slot: Slot, peer: Peer, server: Serving) -> None:
    slot.program("copy", "cat in > out")
    root: dict[str, Any] = {"root": str(server.root), "mark": MARKER}
    seen = stored(server, "in", b"content", path=str(server.root / "in"), **root)
    nowhere = {"path": "/nowhere/DISK/in", "root": "/nowhere/DISK", "mark": MARKER}
    unseen = {**seen, "sources": [{**seen["sources"][0], **nowhere}]}
    first = peer.offer("copy", inputs=[seen], outputs=[to(server, "out", path=str(server.root / "d" / "out"), **root)])
    slot.run()
    assert slot.report(first)["status"] == "finished"
    out: dict[str, Any] = {"path": "/nowhere/DISK/d/out2", "root": "/nowhere/DISK", "mark": MARKER, "source_name": "out"}
    second = peer.offer("copy", inputs=[unseen], outputs=[to(server, "out2", job=101, **out)])
    slot.run()
    assert slot.report(second)["status"] == "finished", slot.report(second)["error"]
    server.stop()
    third = peer.offer(
        "copy", inputs=[seen], outputs=[to(server, "out3", path=str(server.root / "out3"), source_name="out", **root)]
    )
    slot.run()
    assert slot.report(third)["status"] == "finished", "no server is needed where the directory is there"
    assert server.files() == ["d/out", "d/out2", "in", "out3"]


def test_what_is_wrong_with_an_input_at_a_server_is_told_as_with_one_in_a_directory(
    slot: Slot, peer: Peer, server: Serving
) -> None:
    slot.program("copy", "cat in > out")
    good = stored(server, "in", b"content")
    absent = {**good, "lfn": "gone", "sources": [{"storage": "DISK", "url": server.url("GET", "gone")}]}
    damaged = stored(server, "bad", b"kontent")
    damaged["checksum"] = adler(b"content")
    forged = {**good, "sources": [{"storage": "DISK", "url": server.url("GET", "other").replace("/other", "/in")}]}
    second = {**absent, "lfn": "in", "sources": [*absent["sources"], *good["sources"]]}
    jobs = [peer.offer("copy", inputs=[each]) for each in (absent, damaged, forged, second)]
    slot.run()
    codes = [(slot.report(job)["error"] or {}).get("code") for job in jobs]
    assert codes == ["INPUT_MISSING", "INPUT_CORRUPT", "STAGEIN_FAILED", None]
    assert slot.report(jobs[0])["missing_inputs"] == ["gone"]
    assert slot.report(jobs[1])["corrupt_inputs"] == ["bad"]


@pytest.mark.parametrize("how", ["no mark", "no server"])
def test_while_a_server_or_its_root_is_away_nothing_is_called_missing(slot: Slot, peer: Peer, server: Serving, how: str) -> None:
    slot.program("copy", "cat in > out")
    slot.program("write", "echo new > out")
    reads = peer.offer("copy", inputs=[stored(server, "in", b"content")])
    writes = peer.offer("write", outputs=[to(server, "out", job=101)])
    if how == "no mark":
        (server.root / MARKER).rename(server.folder / "mark")
    else:
        server.stop()
    slot.run()
    for job in (reads, writes):
        report = slot.report(job)
        assert (report["error"]["code"], report["down_storages"]) == ("STORAGE_DOWN", ["DISK"]), report["error"]
        assert report["missing_inputs"] == []
    assert server.files() == ["in"]


def test_a_server_that_comes_back_in_a_moment_gets_the_output_all_the_same(slot: Slot, peer: Peer, server: Serving) -> None:
    slot.program("write", f"echo new > out; touch {slot.base / 'written'}")
    job = peer.offer("write", outputs=[to(server, "out")])
    server.stop()
    pilot = slot.start("--idle-exit", "0")
    until((slot.base / "written").exists)
    server.start()
    assert pilot.wait(30) == 0
    assert slot.report(job)["status"] == "finished", slot.report(job)["error"]
    assert server.files() == ["d/out"]


def test_a_name_that_is_taken_is_left_alone(slot: Slot, peer: Peer, server: Serving) -> None:
    slot.program("write", "echo new > out; echo other > other")
    (server.root / "d").mkdir()
    (server.root / "d" / "out").write_text("old\n")
    job = peer.offer("write", outputs=[to(server, "other"), to(server, "out")])
    slot.run()
    assert slot.report(job)["error"]["code"] == "OUTPUT_EXISTS"
    assert (server.root / "d" / "out").read_text() == "old\n"
    assert server.files() == ["d/out"], "the other one is withdrawn"


def test_an_output_larger_than_its_address_allows_is_no_output(slot: Slot, peer: Peer, server: Serving) -> None:
    slot.program("write", "head -c 100000 /dev/zero > out")
    output = to(server, "out") | {"url": server.url("PUT", "d/out", job=100, epoch=1, size=99_999)}
    job = peer.offer("write", outputs=[output])
    slot.run()
    error = slot.report(job)["error"]
    assert (error["code"], "allows 99999 bytes" in error["message"]) == ("STAGEOUT_FAILED", True)
    assert server.files() == []


def test_outputs_of_a_killed_pilot_are_removed_from_the_server_once_the_job_is_gone(
    slot: Slot, peer: Peer, server: Serving
) -> None:
    slot.program("write", "echo new > out")
    job = peer.offer("write", outputs=[to(server, "out")])
    peer.hang.add("report")
    pilot = slot.start()
    until((server.root / "d" / "out").exists)
    pilot.kill()
    pilot.wait()
    until(lambda: not peer._live(peer.jobs[job]), 10)
    peer.released.set()
    peer.hang.clear()
    server.stop()
    slot.run()
    assert len(list(slot.journal.iterdir())) == 1, "what cannot be removed now is removed later"
    server.start()
    slot.run()
    assert server.files() == []
    assert list(slot.journal.iterdir()) == []


def test_an_old_attempt_removes_nothing_that_a_later_one_wrote(slot: Slot, peer: Peer, server: Serving) -> None:
    slot.program("write", "echo new > out")
    job = peer.offer("write", outputs=[to(server, "out")])
    peer.hang.add("report")
    pilot = slot.start()
    until((server.root / "d" / "out").exists)
    pilot.kill()
    pilot.wait()
    (server.root / "d" / "out").unlink()
    time.sleep(0.01)
    (server.root / "d" / "out").write_text("new\n")
    until(lambda: not peer._live(peer.jobs[job]), 10)
    peer.released.set()
    peer.hang.clear()
    slot.run()
    assert server.files() == ["d/out"]
    assert list(slot.journal.iterdir()) == []


def test_an_address_that_is_none_is_a_bad_job_and_is_not_told(slot: Slot, peer: Peer) -> None:
    slot.program("write", "echo new > out")
    bad = {"lfn": "out", "storage": "DISK", "type": "output", "url": "ftp://secret", "remove_url": "ftp://secret"}
    job = peer.offer("write", outputs=[bad])
    slot.run()
    error = slot.report(job)["error"]
    assert (error["code"], "secret" in error["message"]) == ("BAD_JOB", False)
