"""Signals: no payload outlives its pilot or its lease, and no unsettled output stays on storage."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from tests.pilot.conftest import Slot, alive, pid_in, until
from tests.pilot.peer import Peer

ESCAPE = """
(setsid sh -c 'sleep 1000 & echo $! > {base}/escaped' &)
(env -i setsid sh -c 'sleep 1000 & echo $! > {base}/wiped' &)
echo $$ > {base}/pid
exec sleep 1000
"""


def escaper(slot: Slot) -> str:
    """A program that leaves two processes outside its process group and session, without parent, one without its environment."""
    return slot.program("escaper", ESCAPE.format(base=slot.base))


def started(slot: Slot) -> list[int]:
    return [pid_in(slot.base / name) for name in ("pid", "escaped", "wiped")]


def guardian_of(pilot: subprocess.Popen[bytes]) -> int:
    return int(Path(f"/proc/{pilot.pid}/task/{pilot.pid}/children").read_text().split()[0])


def test_a_killed_pilot_takes_everything_its_payload_started_with_it(slot: Slot, peer: Peer) -> None:
    peer.offer(escaper(slot))
    pilot = slot.start()
    pids = started(slot)
    guardian = guardian_of(pilot)
    pilot.kill()
    until(lambda: not any(map(alive, [*pids, guardian])), 3)


def test_a_killed_guardian_takes_it_too_and_the_job_is_reported(slot: Slot, peer: Peer) -> None:
    job = peer.offer(escaper(slot))
    pilot = slot.start()
    pids = started(slot)
    os.kill(guardian_of(pilot), signal.SIGKILL)
    until(lambda: peer.jobs[job].report)
    assert not any(map(alive, pids))
    assert slot.report(job)["error"]["code"] == "PAYLOAD_LOST"
    for _ in range(2):  # the next job gets another guardian, also when one was killed while nothing ran
        job = peer.offer(slot.program("one", "echo 1"))
        until(lambda: peer.jobs[job].report)  # noqa: B023
        assert slot.report(job)["status"] == "finished"
        os.kill(guardian_of(pilot), signal.SIGKILL)


def test_what_survives_both_is_ended_by_the_next_pilot_at_the_slot_and_nobody_else(slot: Slot, peer: Peer) -> None:
    peer.offer(escaper(slot))
    pilot = slot.start()
    payload, escaped, wiped = started(slot)
    other_slot = {"GRIDBROKER_PAYLOAD": "slot-10:1:1", "GRIDBROKER_WORK": str(slot.work)}
    other_work = {"GRIDBROKER_PAYLOAD": "slot-1:1:1", "GRIDBROKER_WORK": str(slot.base / "elsewhere")}
    bystanders = [subprocess.Popen(["sleep", "1000"], env={**os.environ, **more}) for more in (other_slot, other_work)]
    guardian = guardian_of(pilot)
    os.kill(guardian, signal.SIGSTOP)
    pilot.kill()
    pilot.wait()
    os.kill(guardian, signal.SIGKILL)
    until(lambda: not alive(payload), 2)
    assert alive(escaped)
    slot.run()
    until(lambda: not alive(escaped), 2)
    assert all(process.poll() is None for process in bystanders)
    for process in bystanders:
        process.kill()
        process.wait()
    os.kill(wiped, signal.SIGKILL)
    assert sorted(entry.name for entry in slot.work.iterdir()) == ["slot.lock"]


def test_a_stopped_pilot_loses_its_payload_at_the_end_of_the_lease_and_its_job_when_it_goes_on(slot: Slot, peer: Peer) -> None:
    peer.lease_s = 1.5
    job = peer.offer(escaper(slot))
    pilot = slot.start("--once")
    pids = started(slot)
    pilot.send_signal(signal.SIGSTOP)
    until(lambda: not any(map(alive, pids)), 3)
    time.sleep(0.5)
    before = len(peer.asked)
    pilot.send_signal(signal.SIGCONT)
    assert pilot.wait(5) == 0
    assert [verb for verb, _, _ in peer.asked[before:]] == []
    assert peer.jobs[job].report is None
    assert not any(map(alive, pids))


def test_a_pilot_that_was_stopped_while_it_wrote_removes_what_it_wrote(slot: Slot, peer: Peer) -> None:
    peer.lease_s = 1.5
    slot.program("wide", "for i in 1 2 3 4 5; do head -c 50000000 /dev/zero > f$i; done")
    peer.offer("wide", out=[f"f{i}" for i in range(1, 6)], disk_mb=5000)
    pilot = slot.start("--once")
    until(slot.files)
    pilot.send_signal(signal.SIGSTOP)
    assert slot.files()
    time.sleep(1.7)
    pilot.send_signal(signal.SIGCONT)
    assert pilot.wait(5) == 0
    assert slot.files() == []
    assert list(slot.journal.iterdir()) == []
    assert peer.verbs("report") == []


def test_outputs_of_a_pilot_killed_before_its_report_are_removed_by_the_next_one(slot: Slot, peer: Peer) -> None:
    peer.lease_s = 1.0
    slot.program("one", "echo 1 > $1")
    peer.offer("one", "out", out=["out"])
    peer.hang.add("report")
    pilot = slot.start()
    until(lambda: peer.verbs("report"))
    assert slot.files() == ["out"]
    pilot.kill()
    pilot.wait()
    peer.hang.clear()
    follower = slot.start(slot="slot-2", work=slot.base / "work" / "slot-2")
    until(lambda: slot.files() == [], 8)
    assert peer.verbs("settled")[0][1] == 200
    until(lambda: not list(slot.journal.iterdir()))
    follower.terminate()
    assert follower.wait(5) == 0


def test_outputs_of_a_pilot_killed_after_its_report_are_kept(slot: Slot, peer: Peer) -> None:
    slot.program("one", "echo 1 > $1")
    peer.offer("one", "out", out=["out"])
    peer.faults["report"] = ["lost"] * 1000
    pilot = slot.start()
    until(lambda: len(peer.verbs("report")) > 1)
    pilot.kill()
    pilot.wait()
    assert len(list(slot.journal.iterdir())) == 1
    slot.run()
    assert slot.files() == ["out"]
    assert list(slot.journal.iterdir()) == []


def test_a_file_that_somebody_else_put_under_the_same_name_is_not_removed(slot: Slot, peer: Peer) -> None:
    peer.lease_s = 1.0
    slot.program("one", "echo 1 > $1")
    peer.offer("one", "out", out=["out"])
    peer.hang.add("report")
    pilot = slot.start()
    until(lambda: peer.verbs("report"))
    pilot.kill()
    pilot.wait()
    (slot.storage / "out").unlink()
    (slot.storage / "out").write_text("2\n")
    peer.hang.clear()
    time.sleep(1.0)
    slot.run()
    assert slot.files() == ["out"]
    assert list(slot.journal.iterdir()) == []


def test_a_pilot_told_to_stop_fails_its_job_and_ends_within_five_seconds(slot: Slot, peer: Peer) -> None:
    slot.program("stubborn", f"trap '' TERM; echo $$ > {slot.base}/pid; while :; do sleep 0.1; done")
    job = peer.offer("stubborn")
    pilot = slot.start()
    payload = pid_in(slot.base / "pid")
    began = time.monotonic()
    pilot.terminate()
    assert pilot.wait(5) == 0
    assert time.monotonic() - began < 3
    assert not alive(payload)
    assert slot.report(job)["error"]["code"] == "PILOT_STOPPED"
    assert slot.report(job)["killed"] is False


def test_it_also_ends_within_five_seconds_when_nobody_answers(slot: Slot, peer: Peer) -> None:
    peer.offer(slot.program("one", "echo 1 > out"), out=["out"])
    peer.hang.add("report")
    pilot = slot.start()
    until(lambda: peer.verbs("report"))
    began = time.monotonic()
    pilot.terminate()
    assert pilot.wait(5) == 0
    assert time.monotonic() - began < 5
    assert len(list(slot.journal.iterdir())) == 1  # the next pilot of the queue asks what became of it


def test_two_pilots_never_share_a_slot(slot: Slot, peer: Peer) -> None:
    slot.start()
    until(lambda: peer.verbs("match"))
    began = time.monotonic()
    assert slot.start().wait(10) == 4
    assert time.monotonic() - began < 5


def test_a_pilot_whose_software_is_not_there_takes_no_job_to_fail_it(slot: Slot, peer: Peer) -> None:
    assert slot.start("--software", str(slot.base / "sofware")).wait(10) == 2
    assert not peer.verbs("register")
    assert "--software: " in (slot.base / "pilot.err").read_text()


def test_the_next_pilot_at_the_slot_tells_at_once_what_became_of_the_job_before_it(slot: Slot, peer: Peer) -> None:
    peer.lease_s = 1000.0
    job = peer.offer(escaper(slot))
    pilot = slot.start()
    started(slot)
    assert [path.stat().st_mode & 0o077 for path in slot.work.glob("ticket.json")] == [0]
    pilot.kill()
    pilot.wait()
    slot.run()
    assert slot.report(job)["error"]["code"] == "PILOT_STOPPED"
    assert sorted(entry.name for entry in slot.work.iterdir()) == ["slot.lock"]
    before = len(peer.asked)
    slot.run()
    assert "report" not in [verb for verb, _, _ in peer.asked[before:]], "it is told once"


def test_a_job_that_ended_well_is_not_told_of_again(slot: Slot, peer: Peer) -> None:
    job = peer.offer(slot.program("one", "echo 1"))
    slot.run()
    slot.run()
    assert slot.report(job)["status"] == "finished"
    assert len(peer.verbs("report")) == 1


def killed_before_it_knew_its_job(slot: Slot, peer: Peer, job: int) -> None:
    """A pilot that asked, got the job without hearing of it, and was killed."""
    peer.faults["match"] = ["lost"] * 1000
    pilot = slot.start()
    until(lambda: peer.jobs[job].status == "sent")
    pilot.kill()
    pilot.wait()
    peer.faults.clear()


def test_a_job_of_which_a_killed_pilot_never_heard_is_run_by_the_next_one_at_the_slot(slot: Slot, peer: Peer) -> None:
    slot.program("one", f"ls {slot.work} > seen; echo 1 > $1")
    job = peer.offer("one", "out", out=["out", "seen"])
    killed_before_it_knew_its_job(slot, peer, job)
    assert slot.run() == 0
    assert slot.report(job)["status"] == "finished"
    assert (slot.storage / "seen").read_text().split() == [
        f"job-{job}.1",
        "slot.lock",
        "ticket.json",
    ]  # no pilot token lies there
    assert sorted(entry.name for entry in slot.work.iterdir()) == ["slot.lock"]


def test_it_is_given_back_by_one_that_offers_too_little_for_it(slot: Slot, peer: Peer) -> None:
    job = peer.offer(slot.program("one", "echo 1"), memory_mb=1500)
    killed_before_it_knew_its_job(slot, peer, job)
    assert slot.run("--memory-mb", "1000") == 0
    assert slot.report(job)["error"]["code"] == "PILOT_STOPPED"


def test_a_pilot_goes_on_where_the_token_of_the_one_before_it_is_worth_nothing(slot: Slot, peer: Peer) -> None:
    job = peer.offer(slot.program("one", "echo 1"))
    killed_before_it_knew_its_job(slot, peer, job)
    peer.faults["match"] = [(401, None)]
    other = peer.offer("one")
    assert slot.run() == 0
    assert slot.report(other)["status"] == "finished"
    assert len(peer.verbs("register")) == 2
