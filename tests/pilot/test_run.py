"""What becomes of a job at the pilot: files in and out, limits, and each way to fail."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from broker_site.foundation.access.jsonbody import decode
from broker_site.foundation.access.problems import Refused
from brokerage.pilot.job import Failure
from brokerage.pilot.metadata import read_metadata
from tests.pilot.conftest import Slot
from tests.pilot.peer import Peer, adler


def code(slot: Slot, job: int) -> str:
    error = slot.report(job)["error"]
    assert error is not None
    assert slot.report(job)["outputs"] == []
    return str(error["code"])


def unpacked(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def test_a_job_reads_its_inputs_and_leaves_checked_outputs_and_a_log(slot: Slot, peer: Peer) -> None:
    slot.program("join", 'cat "$1" "$2" > "$3"; echo said; echo complained >&2')
    log = {"lfn": "job.log.tgz", "storage": "DISK", "path": str(slot.storage / "job.log.tgz"), "type": "log"}
    entry = {"lfn": "all.txt", "storage": "DISK", "path": str(slot.storage / "sub" / "all.txt"), "type": "output"}
    inputs = [slot.stored("a.txt", b"first\n"), slot.stored("b.txt", b"second\n")]
    inputs[1]["checksum"] = "ad:" + inputs[1]["checksum"].upper()
    job = peer.offer("join", "a.txt b.txt 'all.txt'", inputs=inputs, outputs=[entry, log])
    assert slot.run() == 0
    report = slot.report(job)
    written = (slot.storage / "sub" / "all.txt").read_bytes()
    assert written == b"first\nsecond\n"
    assert report["status"] == "finished"
    assert report["error"] is None
    assert report["exit_code"] == 0
    assert report["outputs"][0] == {"lfn": "all.txt", "size": len(written), "checksum": adler(written), "storage": "DISK"}
    archive = (slot.storage / "job.log.tgz").read_bytes()
    assert report["outputs"][1] == {"lfn": "job.log.tgz", "size": len(archive), "checksum": adler(archive), "storage": "DISK"}
    texts = unpacked(archive)
    assert texts["stdout"] == b"said\n"
    assert texts["stderr"] == b"complained\n"
    assert b"staged in 2 files" in texts["pilot.log"]
    assert peer.jobs[job].seen[:2] == ["starting", "running"]
    assert report["metrics"]["wall_s"] >= 0
    assert slot.files() == ["a.txt", "b.txt", "job.log.tgz", "sub"]
    assert list(slot.journal.iterdir()) == []
    assert [entry.name for entry in slot.work.iterdir()] == ["slot.lock"]


def test_a_payload_may_be_any_program_and_sees_nothing_of_the_pilots_environment(slot: Slot, peer: Peer) -> None:
    (slot.software / "copy").symlink_to("/bin/cp")
    slot.program("show.py", "import json, os\njson.dump(dict(os.environ), open('env', 'w'))")
    slot.program(
        "events", 'echo x > e; echo \'{"files":{"output":[{"subFiles":[{"name":"e","nentries":12}]}]}}\' > jobReport.json'
    )
    copy = peer.offer("copy", "in.dat out.dat", inputs=[slot.stored("in.dat", b"abc")], out=["out.dat"])
    show = peer.offer("show.py", out=["env"], attempt_nr=2)
    events = peer.offer("events", out=["e"])
    slot.run()
    assert slot.report(copy)["status"] == "finished"
    assert (slot.storage / "out.dat").read_bytes() == b"abc"
    seen = json.loads((slot.storage / "env").read_text())
    assert seen["GRIDBROKER_PAYLOAD"] == f"slot-1:{show}:1"
    assert seen["GRIDBROKER_QUEUE"] == "ALPHA"
    assert seen["GRIDBROKER_ATTEMPTNR"] == "2"
    assert "SECRET_OF_THE_PILOT" not in seen
    assert not any("gbj_" in value or "gbp_" in value or "gbe_" in value for value in seen.values())
    assert slot.report(events)["outputs"][0]["n_events"] == 12


def test_a_payload_tells_what_it_found_where_it_is_asked_for_and_else_has_failed(slot: Slot, peer: Peer) -> None:
    slot.program("choose", "printf '%s' \"$1\" > jobMetadata.json")
    slot.program("large", 'printf \'{"A": "%070000d"}\' 1 > jobMetadata.json')
    good, text, plain = (peer.offer("choose", a, metadata_file="jobMetadata.json") for a in ("'{\"A\": [1]}'", "{", "'[1]'"))
    unasked = peer.offer("choose", "'{}'")
    large, absent = (peer.offer(name, metadata_file="jobMetadata.json") for name in ("large", "true.sh"))
    slot.program("true.sh", "exit 0")
    slot.run()
    assert (slot.report(good)["status"], slot.report(good)["metadata"]) == ("finished", {"A": [1]})
    assert "metadata" not in slot.report(unasked)
    assert {code(slot, job) for job in (text, plain, large, absent)} == {"BAD_METADATA"}
    assert "65536 bytes" in slot.report(large)["error"]["message"]
    assert slot.report(absent)["error"]["message"] == "jobMetadata.json was not written"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"A": NaN}', "not finite"),
        ('{"A": [1e999]}', "not finite"),
        ('{"A": -9223372036854775809}', "64 bits"),
        ('{"A": "\\u0000"}', "NUL"),
        ('{"\\ud800": 1}', "surrogate"),
        ('{"A": ' + "[" * 60 + "]" * 60 + "}", "levels"),
        ('{"A": [' + "1," * 10_000 + "1]}", "members"),
    ],
)
def test_what_no_report_can_bring_fails_the_job_instead_of_losing_its_report(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "jobMetadata.json").write_text(content)
    with pytest.raises(Failure, match=told) as wrong:
        read_metadata(tmp_path, "jobMetadata.json")
    assert wrong.value.code == "BAD_METADATA"
    with pytest.raises(Refused):
        decode(json.dumps({"metadata": json.loads(content)}).encode())


def test_a_failing_payload_is_reported_with_its_last_words_and_leaves_no_file(slot: Slot, peer: Peer) -> None:
    slot.program("bad", r"echo half > out; printf 'first\nnul\0byte \377 \033[31mred\nlast\n' >&2; exit 7")
    slot.program("signal", "kill -SEGV $$")
    slot.program("long", "head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1")
    bad, signalled, long = (peer.offer(name, out=["out"]) for name in ("bad", "signal", "long"))
    slot.run()
    assert code(slot, bad) == "PAYLOAD_EXIT"
    assert slot.report(bad)["exit_code"] == 7
    message = slot.report(bad)["error"]["message"]
    assert message == "last (exit code 7)\nfirst\nnul byte \ufffd [31mred"
    assert slot.report(bad)["killed"] is False
    assert code(slot, signalled) == "PAYLOAD_EXIT"
    assert slot.report(signalled)["exit_code"] == 128 + 11
    assert slot.report(long)["error"]["message"] == "x" * 250 + " (exit code 1)"
    assert slot.files() == []


TRACEBACK = """import sys
print("reading 3 files")
def read(name):
    raise ValueError(f"no events in {name}")
read("a.root")
"""


def test_the_log_keeps_head_and_tail_of_what_is_longer_than_the_server_lets_it_be(slot: Slot, peer: Peer) -> None:
    slot.program("talks", "echo begin; head -c 100000 /dev/zero | tr '\\0' x; echo end; echo short >&2")
    log = {"lfn": "job.log.tgz", "storage": "DISK", "path": str(slot.storage / "job.log.tgz"), "type": "log"}
    job = peer.offer("talks", outputs=[log], log_max=1000)
    slot.run()
    assert slot.report(job)["status"] == "finished"
    texts = unpacked((slot.storage / "job.log.tgz").read_bytes())
    head, between, tail = texts["stdout"].split(b"\n---")[0], texts["stdout"].split(b"---")[1], texts["stdout"][-500:]
    assert head.startswith(b"begin\nxxx")
    assert len(head) == 500
    assert between == b" 99010 bytes are left out here "
    assert tail.endswith(b"xxx" + b"end\n")
    assert texts["stderr"] == b"short\n"


def test_a_python_failure_is_told_by_its_last_line_and_its_log_is_stored_and_reported(slot: Slot, peer: Peer) -> None:
    (slot.software / "read.py").write_text(TRACEBACK)
    (slot.software / "fill.py").write_text("open('out', 'wb').write(bytes(3_000_000))")
    entries = [
        {"lfn": n, "storage": "DISK", "path": str(slot.storage / "logs" / n), "type": t}
        for n, t in (("out", "output"), ("l.tgz", "log"))
    ]
    job = peer.offer("read.py", outputs=entries)
    more = [entry | {"lfn": f"2.{entry['lfn']}", "path": f"{entry['path']}.2"} for entry in entries]
    too_large = peer.offer("fill.py", outputs=more, disk_mb=1)
    slot.run()
    report = slot.report(job)
    first, *before = report["error"]["message"].split("\n")
    assert first == "ValueError: no events in a.root (exit code 1)"
    assert before[0] == "Traceback (most recent call last):"
    archive = (slot.storage / "logs" / "l.tgz").read_bytes()
    assert report["outputs"] == [{"lfn": "l.tgz", "size": len(archive), "checksum": adler(archive), "storage": "DISK"}]
    assert report["log_end"] == ""
    texts = unpacked(archive)
    assert texts["stdout"] == b"reading 3 files\n"
    assert texts["stderr"].endswith(b"ValueError: no events in a.root\n")
    assert b"fails: PAYLOAD_EXIT" in texts["pilot.log"]
    assert [entry["lfn"] for entry in slot.report(too_large)["outputs"]] == ["2.l.tgz"]
    assert sorted(entry.name for entry in (slot.storage / "logs").iterdir()) == ["l.tgz", "l.tgz.2"]
    assert list(slot.journal.iterdir()) == []


def test_the_end_of_a_log_that_cannot_be_stored_comes_with_the_report(slot: Slot, peer: Peer) -> None:
    slot.program("bad", r"seq 1 20000; printf 'nul\0 \377 \033[31mred\nlast\n' >&2; exit 7")
    log = {"lfn": "l.tgz", "storage": "DISK", "path": str(slot.storage / "l.tgz"), "type": "log"}
    (slot.storage / "taken").write_text("of somebody else")
    without = peer.offer("bad")
    taken = peer.offer("bad", outputs=[log | {"path": str(slot.storage / "taken")}])
    slot.run()
    for job in (without, taken):
        text = slot.report(job)["log_end"]
        assert text.endswith("20000\n--- stderr ---\nnul  \ufffd  [31mred\nlast\n")
        assert "fails: PAYLOAD_EXIT: last (exit code 7)" in text
        assert 40_000 < len(text) < 66_000
        assert slot.report(job)["outputs"] == []
    assert slot.files() == ["taken"]


def test_outputs_that_were_not_written_fail_the_job_unless_they_are_optional(slot: Slot, peer: Peer) -> None:
    slot.program("one", "echo 1 > one")
    slot.program("escape", "ln -s /etc/passwd two")
    both = [
        {"lfn": n, "storage": "DISK", "path": str(slot.storage / n), "type": "output", "optional": n == "two"}
        for n in ("one", "two")
    ]
    forced = peer.offer("one", out=["one", "two"])
    free = peer.offer("one", outputs=both)
    link = peer.offer("escape", out=["two"])
    slot.run()
    assert code(slot, forced) == "OUTPUT_MISSING"
    assert [entry["lfn"] for entry in slot.report(free)["outputs"]] == ["one"]
    assert code(slot, link) == "OUTPUT_MISSING"
    assert slot.files() == ["one"]


def test_an_output_that_the_payload_calls_otherwise_gets_its_name_on_storage(slot: Slot, peer: Peer) -> None:
    slot.program(
        "event",
        """echo 1 > event.root
           printf '{"files":{"output":[{"subFiles":[{"name":"event.root","nentries":7}]}]}}' > jobReport.json""",
    )
    renamed = {"storage": "DISK", "type": "output", "optional": False, "source_name": "event.root"}
    good = peer.offer("event", outputs=[{**renamed, "lfn": "EVT.1.root", "path": str(slot.storage / "EVT.1.root")}])
    other = {**renamed, "source_name": "events.root", "lfn": "EVT.2.root", "path": str(slot.storage / "EVT.2.root")}
    bad = peer.offer("event", outputs=[other])
    slot.run()
    [reported] = slot.report(good)["outputs"]
    assert (reported["lfn"], reported["n_events"]) == ("EVT.1.root", 7)
    assert code(slot, bad) == "OUTPUT_MISSING"
    assert "events.root, which becomes EVT.2.root, was not written" in slot.report(bad)["error"]["message"]
    assert slot.files() == ["EVT.1.root"]


def test_an_output_never_replaces_a_file_on_storage(slot: Slot, peer: Peer) -> None:
    slot.program("two", "echo new > a; echo new > b")
    slot.stored("b", b"old")
    job = peer.offer("two", out=["a", "b"])
    slot.run()
    assert code(slot, job) == "OUTPUT_EXISTS"
    assert slot.files() == ["b"]
    assert (slot.storage / "b").read_bytes() == b"old"


def test_inputs_are_tried_at_every_source_and_bad_ones_are_named(slot: Slot, peer: Peer) -> None:
    slot.program("take", "cat good > out")
    good, bad, short = slot.stored("good", b"right"), slot.stored("bad", b"right"), slot.stored("short", b"right")
    (slot.storage / "bad").write_bytes(b"wrong")
    (slot.storage / "short").write_bytes(b"righ")
    missing = {**good, "lfn": "missing", "sources": [{"storage": "X", "path": "/nowhere/missing"}]}
    nowhere = {**good, "lfn": "nowhere", "sources": []}
    elsewhere = {
        **good,
        "sources": [{"storage": "X", "path": "/nowhere/good"}, *bad["sources"], *short["sources"], *good["sources"]],
    }
    second = peer.offer("take", inputs=[elsewhere], out=["out"])
    lost = peer.offer("take", inputs=[missing, good, nowhere], out=["out2"])
    damaged = peer.offer("take", inputs=[bad, missing], out=["out3"])
    size = peer.offer("take", inputs=[{**short, "checksum": None}], out=["out4"])
    slot.run()
    assert slot.report(second)["status"] == "finished"
    assert code(slot, lost) == "INPUT_MISSING"
    assert slot.report(lost)["missing_inputs"] == ["missing", "nowhere"]
    assert slot.report(damaged)["missing_inputs"] == ["missing"]
    assert slot.report(damaged)["corrupt_inputs"] == ["bad"]
    assert code(slot, size) == "INPUT_CORRUPT"
    assert slot.report(size)["corrupt_inputs"] == ["short"]


UNFIT: list[tuple[dict[str, Any], str]] = [
    ({"container": "atlas/athena:24.0.5"}, "NO_CONTAINER"),
    ({"transformation": "/bin/true"}, "TRF_NOT_FOUND"),
    ({"transformation": "../outside"}, "TRF_NOT_FOUND"),
    ({"transformation": "nothing"}, "TRF_NOT_FOUND"),
    ({"transformation": "plain"}, "TRF_NOT_FOUND"),
    ({"transformation": "broken"}, "PAYLOAD_START"),
    ({"parameters": "'open quote"}, "BAD_PARAMETERS"),
    ({"parameters": "a\0b"}, "BAD_PARAMETERS"),
    ({"inputs": [{"lfn": "../x", "sources": []}]}, "BAD_JOB"),
    ({"outputs": [{"lfn": "x", "storage": "D", "path": "relative"}]}, "BAD_JOB"),
    ({"walltime_s": "long"}, "BAD_JOB"),
]


def test_a_job_that_cannot_be_started_fails_with_its_reason(slot: Slot, peer: Peer) -> None:
    (slot.base / "outside").write_text("#!/bin/sh\n")
    (slot.base / "outside").chmod(0o755)
    (slot.software / "plain").write_text("no program")
    slot.program("broken", "#!/no/such/interpreter\n")
    slot.program("good", "true")
    jobs = [peer.offer("good") for _ in UNFIT]
    for job, (changes, _) in zip(jobs, UNFIT, strict=True):
        peer.jobs[job].document.update(changes)
    slot.run()
    assert [(changes, code(slot, job)) for job, (changes, _) in zip(jobs, UNFIT, strict=True)] == UNFIT


def test_limits_end_a_payload_with_all_it_started(slot: Slot, peer: Peer) -> None:
    slot.program("write.py", "open('big', 'wb').write(bytes(30_000_000))")
    slot.program("stubborn", "exec sleep 1000")
    slot.program("eat.py", "import time\nx = bytearray(300_000_000)\ntime.sleep(100)")
    slot.program("burst.py", "x = bytearray(50_000_000_000)")
    slot.program("write", "head -c 30000000 /dev/zero > big")
    slot.program("many", "for i in 1 2 3 4 5; do head -c 5000000 /dev/zero > f$i; done; sleep 100")
    walltime = peer.offer("stubborn", walltime_s=0.3)
    memory = peer.offer("eat.py", memory_mb=200)
    burst = peer.offer("burst.py", memory_mb=200)
    big = peer.offer("write", disk_mb=20)
    big_python = peer.offer("write.py", disk_mb=20)
    many = peer.offer("many", disk_mb=20)
    slot.run()
    assert code(slot, walltime) == "WALLTIME"
    assert "0.3 s" in slot.report(walltime)["error"]["message"]
    assert code(slot, memory) == "PAYLOAD_MEMORY"
    assert code(slot, burst) == "PAYLOAD_MEMORY"
    assert code(slot, big) == "PAYLOAD_DISK"
    assert code(slot, big_python) == "PAYLOAD_DISK"
    assert code(slot, many) == "PAYLOAD_DISK"


def test_what_a_payload_left_running_is_ended_before_the_report(slot: Slot, peer: Peer) -> None:
    escape = f"setsid sh -c 'sleep 1000 & echo $! > {slot.base}/pid; wait' < /dev/null > /dev/null 2>&1 &"
    slot.program("leave", f"{escape} while [ ! -s {slot.base}/pid ]; do :; done; echo 1 > out")
    job = peer.offer("leave", out=["out"])
    slot.run()
    assert slot.report(job)["status"] == "finished"
    assert not Path(f"/proc/{(slot.base / 'pid').read_text().strip()}").exists()


def test_a_working_folder_with_rights_taken_away_is_removed(slot: Slot, peer: Peer) -> None:
    slot.program("lock", "mkdir -p deep/er; echo 1 > deep/er/file; chmod 0 deep/er deep")
    peer.offer("lock")
    slot.run()
    assert not list(slot.work.glob("job-*"))


def packed(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def test_every_pilot_can_merge_files_without_any_software_of_the_site(slot: Slot, peer: Peer) -> None:
    texts = [slot.stored(f"um.{i}.txt", f"{i}\n".encode()) for i in range(3)]
    archives = [slot.stored(f"um.{i}.tgz", packed({"a/b": f"{i}".encode()})) for i in range(2)]
    parameters = "um.0.txt,um.1.txt,um.2.txt:all.txt um.0.tgz,um.1.tgz:all.tgz"
    good = peer.offer("gridbroker-merge", parameters, inputs=texts + archives, out=["all.txt", "all.tgz"])
    bad = peer.offer("gridbroker-merge", "um.0.txt,um.7.txt:all2.txt", inputs=texts[:1], out=["all2.txt"])
    nothing = peer.offer("gridbroker-merge", "", out=["all3.txt"])
    slot.run()
    assert slot.report(good)["status"] == "finished"
    assert (slot.storage / "all.txt").read_bytes() == b"0\n1\n2\n"
    assert unpacked((slot.storage / "all.tgz").read_bytes()) == {"um.0.tgz/a/b": b"0", "um.1.tgz/a/b": b"1"}
    assert code(slot, bad) == "PAYLOAD_EXIT"
    assert "um.7.txt" in slot.report(bad)["error"]["message"]
    assert code(slot, nothing) == "PAYLOAD_EXIT"
    assert slot.report(nothing)["error"]["message"].startswith("nothing to merge")
