"""A worker node whose disk is full is at fault itself: the report does not blame the input or its storage."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.chaos.small_disk import own_mounts, why_not
from tests.pilot.conftest import ROOT, Slot, until
from tests.pilot.peer import Peer

SCRIPT = """
import subprocess, sys
from pathlib import Path
from brokerage.pilot.job import Failure, Input, Source
from brokerage.pilot.stage_in import stage_in

storage, work = Path(sys.argv[1]), Path(sys.argv[2])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(work)], check=True)
(storage / "a.root").write_bytes(b"x" * 10**6)
try:
    stage_in([Input("a.root", None, None, (Source(storage / "a.root"),))], work, lambda: None)
except Failure as failure:
    print(failure.code, failure.message, sorted(path.name for path in work.iterdir()))
"""


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_an_input_that_does_not_fit_on_the_worker_node_is_not_the_fault_of_its_storage(tmp_path: Path) -> None:
    storage, work = tmp_path / "storage", tmp_path / "work"
    storage.mkdir()
    work.mkdir()
    command = [*own_mounts(), sys.executable, "-c", SCRIPT, str(storage), str(work)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert said.strip() == "PILOT_ERROR no space left on the disk of the worker node: a.root []"


def on_small_disk(slot: Slot, size: str, *more: str, first: str = ":") -> subprocess.Popen[bytes]:
    """A pilot whose work folder is on a small disk of its own; `first` is done there before."""
    slot.work.mkdir(parents=True)
    disk = ["sh", "-c", f'mount -t tmpfs -o size={size} tmpfs "$0" && (cd "$0" && {first}); exec "$@"', str(slot.work)]
    with (slot.base / "pilot.err").open("ab") as errors:
        pilot = subprocess.Popen([*own_mounts(), *disk, *slot.command(*more)], cwd=ROOT, stderr=errors)
    slot.pilots.append(pilot)
    return pilot


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_a_pilot_whose_jobs_fail_for_its_full_disk_asks_ever_more_seldom_and_offers_no_more_than_is_free(
    slot: Slot, peer: Peer
) -> None:
    large = slot.stored("large", b"x" * 3 * 10**6)
    for _ in range(20):
        peer.offer(slot.program("one", "echo 1"), inputs=[large])
    pilot = on_small_disk(slot, "2m")
    until(lambda: len(peer.verbs("match")) == 2, 30)
    time.sleep(1.0)
    assert [body["disk_mb"] for body, _ in peer.verbs("match")] == [2, 2]
    assert [held.report["error"]["code"] for held in peer.jobs.values() if held.report] == ["PILOT_ERROR"] * 2
    said = (slot.base / "pilot.err").read_text()
    assert "the job failed for a fault of this node (no space left on the disk of the worker node: large)" in said
    assert "asks for none for 1 s" in said
    assert "asks for none for 2 s" in said
    assert said.count("has 2 MB, less than the slot's 5000: jobs that need more are not asked for") == 1
    pilot.terminate()
    assert pilot.wait(30) == 0


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_a_pilot_asks_for_nothing_while_its_disk_is_full_and_works_when_it_has_space_again(slot: Slot, peer: Peer) -> None:
    job = peer.offer(slot.program("one", "echo 1"))
    pilot = on_small_disk(slot, "256k", first="(cat /dev/zero > ballast; sleep 2; rm ballast) 2> /dev/null &")
    until(lambda: peer.verbs("register"), 30)
    time.sleep(0.5)
    assert peer.verbs("match") == []
    until(lambda: peer.jobs[job].report, 30)
    assert peer.jobs[job].status == "finished"
    said = (slot.base / "pilot.err").read_text()
    assert said.count("asks for no job: No space left on device") == 1
    assert "can be written to again" in said
    pilot.terminate()
    assert pilot.wait(30) == 0
