"""Standard output and error beside the log of a job: plain files where the server tells of them, and never a failure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brokerage.pilot import log_streams
from brokerage.pilot.copying import identity
from brokerage.pilot.job import read_job
from brokerage.pilot.journal import Journal
from brokerage.pilot.remote_storage import upload
from brokerage.pilot.storage_root import StorageRoot
from tests.pilot.conftest import Slot, until
from tests.pilot.peer import Peer, adler
from tests.pilot.test_run import unpacked
from tests.storage_server.serving import Serving

STREAMS = ("pilot.log", "stdout", "stderr")
TALKS = "echo said; echo complained >&2; echo made > out"


def log_in(folder: Path, name: str = "job.log.tgz") -> dict[str, Any]:
    """A log of the wire whose streams go beside it into a folder."""
    streams = [{"stream": each, "lfn": f"{name}.{each}", "path": str(folder / f"{name}.{each}")} for each in STREAMS]
    return {"lfn": name, "storage": "DISK", "path": str(folder / name), "type": "log", "streams": streams}


def out_in(folder: Path) -> dict[str, Any]:
    return {"lfn": "out", "storage": "DISK", "path": str(folder / "out"), "type": "output"}


def test_output_and_error_stand_beside_the_log_of_a_job_as_plain_files(slot: Slot, peer: Peer) -> None:
    slot.program("talks", TALKS)
    job = peer.offer("talks", outputs=[out_in(slot.storage), log_in(slot.storage)])
    slot.run()
    report = slot.report(job)
    assert (report["status"], [each["lfn"] for each in report["outputs"]]) == ("finished", ["out", "job.log.tgz"])
    assert slot.files() == ["job.log.tgz", *(f"job.log.tgz.{each}" for each in sorted(STREAMS)), "out"]
    packed = unpacked((slot.storage / "job.log.tgz").read_bytes())
    for each in ("stdout", "stderr"):
        assert (slot.storage / f"job.log.tgz.{each}").read_bytes() == packed[each]
    assert b"staged out 2 files" in (slot.storage / "job.log.tgz.pilot.log").read_bytes()
    assert list(slot.journal.iterdir()) == []


def test_they_are_stored_of_a_job_that_failed_too_and_cut_as_in_its_log(slot: Slot, peer: Peer) -> None:
    slot.program("fails", "head -c 100000 /dev/zero | tr '\\0' x; echo end; exit 3")
    job = peer.offer("fails", outputs=[out_in(slot.storage), log_in(slot.storage)], log_max=1000)
    slot.run()
    assert [each["lfn"] for each in slot.report(job)["outputs"]] == ["job.log.tgz"]
    stdout = (slot.storage / "job.log.tgz.stdout").read_bytes()
    assert stdout == unpacked((slot.storage / "job.log.tgz").read_bytes())["stdout"]
    assert stdout.startswith(b"x" * 500 + b"\n--- 99004 bytes are left out here ---\n")
    assert b"fails: PAYLOAD_EXIT" in (slot.storage / "job.log.tgz.pilot.log").read_bytes()
    assert "out" not in slot.files()


@pytest.mark.parametrize("taken", STREAMS)
def test_one_that_cannot_be_stored_is_no_failure_and_none_of_them_is_left(slot: Slot, peer: Peer, taken: str) -> None:
    slot.program("talks", TALKS)
    (slot.storage / f"job.log.tgz.{taken}").write_text("of somebody else")
    job = peer.offer("talks", outputs=[out_in(slot.storage), log_in(slot.storage)])
    slot.run()
    assert slot.report(job)["status"] == "finished"
    assert slot.files() == ["job.log.tgz", f"job.log.tgz.{taken}", "out"]
    assert (slot.storage / f"job.log.tgz.{taken}").read_text() == "of somebody else"
    assert unpacked((slot.storage / "job.log.tgz").read_bytes())["stdout"] == b"said\n"
    assert list(slot.journal.iterdir()) == []
    told = (slot.base / "pilot.err").read_text()
    assert f"no plain files beside the log of job {job}.1: job.log.tgz.{taken} stands on DISK already" in told


def test_a_job_whose_payload_never_began_has_its_archive_alone(slot: Slot, peer: Peer) -> None:
    slot.program("talks", TALKS)
    missing = {"lfn": "in", "size": 1, "checksum": "00000001", "sources": [{"storage": "X", "path": "/nowhere/in"}]}
    job = peer.offer("talks", inputs=[missing], outputs=[log_in(slot.storage)])
    slot.run()
    assert slot.report(job)["error"]["code"] == "INPUT_MISSING"
    assert slot.files() == ["job.log.tgz"]


def test_a_stream_that_this_pilot_does_not_know_is_none_of_its_business(slot: Slot, peer: Peer) -> None:
    slot.program("talks", TALKS)
    log = log_in(slot.storage)
    log["streams"].append({"stream": "core", "lfn": "job.log.tgz.core", "path": str(slot.storage / "job.log.tgz.core")})
    peer.offer("talks", outputs=[log])
    slot.run()
    assert slot.files() == ["job.log.tgz", *(f"job.log.tgz.{each}" for each in sorted(STREAMS))]


def test_those_of_a_killed_pilot_go_with_its_outputs_once_the_job_is_gone(slot: Slot, peer: Peer) -> None:
    slot.program("talks", TALKS)
    job = peer.offer("talks", outputs=[out_in(slot.storage), log_in(slot.storage)])
    peer.hang.add("report")
    pilot = slot.start()
    until((slot.storage / "job.log.tgz.stderr").exists)
    pilot.kill()
    pilot.wait()
    until(lambda: not peer._live(peer.jobs[job]), 10)
    peer.released.set()
    peer.hang.clear()
    slot.run()
    assert slot.files() == []
    assert list(slot.journal.iterdir()) == []


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    serving = Serving(tmp_path)
    yield serving
    serving.stop()


def at_server(server: Serving, lfn: str, **size: int) -> dict[str, Any]:
    """The signed addresses of a file that a job writes."""
    return {
        "lfn": lfn,
        "url": server.url("PUT", f"d/{lfn}", job=100, epoch=1, **size),
        "remove_url": server.url("DELETE", f"d/{lfn}", job=100, epoch=1),
    }


def log_at(server: Serving, **size: int) -> dict[str, Any]:
    streams = [{"stream": each, **at_server(server, f"log.tgz.{each}", **size)} for each in STREAMS]
    return {"storage": server.name, "type": "log", **at_server(server, "log.tgz"), "streams": streams}


@pytest.mark.servers
def test_they_go_to_the_server_of_a_storage_that_is_no_directory(slot: Slot, peer: Peer, server: Serving) -> None:
    slot.program("talks", TALKS)
    job = peer.offer("talks", outputs=[log_at(server, size=1064)], log_max=1000)
    slot.run()
    assert [each["lfn"] for each in slot.report(job)["outputs"]] == ["log.tgz"]
    assert server.files() == ["d/log.tgz", *(f"d/log.tgz.{each}" for each in sorted(STREAMS))]
    assert (server.root / "d" / "log.tgz.stdout").read_bytes() == b"said\n"
    assert list(slot.journal.iterdir()) == []


@pytest.mark.servers
def test_a_pilot_that_sends_more_than_it_may_is_refused_and_its_job_has_the_archive(
    slot: Slot, peer: Peer, server: Serving, tmp_path: Path
) -> None:
    slot.program("talks", "head -c 5000 /dev/zero | tr '\\0' x")
    log = log_at(server, size=1064)
    job = peer.offer("talks", outputs=[log], log_max=5000)
    slot.run()
    assert slot.report(job)["status"] == "finished"
    assert server.files() == ["d/log.tgz"]
    assert "the address allows 1064 bytes" in (slot.base / "pilot.err").read_text()
    content = b"x" * 1065
    (tmp_path / "large").write_bytes(content)
    url = log["streams"][1]["url"]
    with (tmp_path / "large").open("rb") as file, pytest.raises(PermissionError):
        upload("DISK", url, file.fileno(), 1065, adler(content))
    for other in ("log.tgz.stderr", "log.tgz.core", "other/log.tgz.stdout"):
        with (tmp_path / "large").open("rb") as file, pytest.raises(PermissionError):
            upload("DISK", url.replace("/d/log.tgz.stdout", f"/d/{other}"), file.fileno(), 100, adler(content[:100]))
    assert server.files() == ["d/log.tgz"]


def test_of_an_attempt_that_is_withdrawn_no_stream_stays_without_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later attempt writes a log of the same name: what an earlier one left must not stand beside that."""
    root, journal = StorageRoot("DISK", tmp_path), Journal(tmp_path / "journal", "7.1")
    log, stream = tmp_path / "log.tgz", tmp_path / "log.tgz.stdout"
    for path in (log, stream):
        path.write_bytes(b"content")
        written = identity(path)
        assert written is not None
        journal.will_publish(path.with_name(f".{path.name}.7.1.part"), path, written, root)
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path == log:
            raise PermissionError(13, "Permission denied")
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(PermissionError):
        journal.discard()
    assert (log.exists(), stream.exists(), journal.path.exists()) == (True, False, True)


def test_a_storage_that_takes_too_long_over_them_does_not_hold_up_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "said").write_bytes(b"said")
    (tmp_path / "storage").mkdir()
    log = log_in(tmp_path / "storage")
    document = {"id": 7, "epoch": 1, "token": "t", "lease_s": 60, "queue": "A", "transformation": "x"}
    job = read_job({**document, "outputs": [{**log, "root": str(tmp_path / "storage")}]})
    members, journal = dict.fromkeys(STREAMS, tmp_path / "said"), Journal(tmp_path / "journal", "7.1")
    monkeypatch.setattr(log_streams, "MOST_S", -1.0)
    told = log_streams.store_streams(job.outputs, members, 100, tmp_path / "streams", "7.1", journal, lambda: None)
    assert told == "it took longer than -1 s"
    assert list((tmp_path / "storage").iterdir()) == []
    monkeypatch.undo()
    assert log_streams.store_streams(job.outputs, members, 100, tmp_path / "again", "7.1", journal, lambda: None) == ""
    assert len(list((tmp_path / "storage").iterdir())) == 3
