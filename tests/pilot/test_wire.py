"""Lost answers, refusals and commands: what the pilot makes of every answer of the server."""

from __future__ import annotations

import time

import pytest

from tests.pilot.conftest import Slot, alive, pid_in, until
from tests.pilot.peer import Peer


def sleeper(slot: Slot, name: str = "sleeper") -> str:
    """A program that writes its process id and sleeps."""
    return slot.program(name, f"echo $$ > {slot.base}/pid; echo 1 > out; exec sleep 1000")


def test_a_lost_answer_to_an_ask_is_given_again_and_no_job_is_lost(slot: Slot, peer: Peer) -> None:
    slot.program("one", "echo 1 > $1")
    jobs = [peer.offer("one", f"out{n}", out=[f"out{n}"]) for n in range(2)]
    peer.faults["match"] = ["lost", "lost"]
    slot.run()
    asks = [body["request"] for body, _ in peer.verbs("match")]
    assert asks[0] == asks[1] == asks[2] != asks[3]
    assert [slot.report(job)["status"] for job in jobs] == ["finished", "finished"]


def test_a_lost_answer_to_a_report_is_asked_for_until_it_comes(slot: Slot, peer: Peer) -> None:
    slot.program("one", "echo 1 > out")
    job = peer.offer("one", out=["out"])
    peer.faults["report"] = [(502, None), (429, 0.3), (408, None), "lost", "lost", "lost"]
    began = time.monotonic()
    slot.run()
    assert time.monotonic() - began > 0.3
    bodies = [body for body, _ in peer.verbs("report")]
    assert len(bodies) == 7
    assert all(body == bodies[0] for body in bodies)
    assert peer.jobs[job].status == "finished"
    assert slot.files() == ["out"]
    assert list(slot.journal.iterdir()) == []


def test_a_pilot_that_asked_too_often_waits_just_as_long_as_it_is_told(slot: Slot, peer: Peer) -> None:
    slot.program("one", "echo 1 > out")
    job = peer.offer("one", out=["out"])
    peer.faults["match"] = [(429, 0.1)] * 20
    began = time.monotonic()
    slot.run()
    assert 2.0 < time.monotonic() - began < 20, "whole seconds would be twenty"
    assert peer.jobs[job].status == "finished"


@pytest.mark.parametrize("verb", ["match", "heartbeat", "report"])
def test_an_answer_that_ends_early_is_no_answer(slot: Slot, peer: Peer, verb: str) -> None:
    """A server killed between the first and the last byte of its answer has told nothing: least of all to remove the outputs."""
    slot.program("one", "echo 1 > out")
    job = peer.offer("one", out=["out"])
    peer.faults[verb] = ["bodiless", "half", "bodiless"]
    slot.run()
    assert peer.jobs[job].status == "finished"
    assert slot.files() == ["out"]
    assert len(peer.verbs("report")) == (4 if verb == "report" else 1)
    assert list(slot.journal.iterdir()) == []


def test_outputs_are_removed_when_the_server_does_not_take_them_as_finished(slot: Slot, peer: Peer) -> None:
    slot.program("one", "echo 1 > out")
    stale = peer.offer("one", out=["out"])
    peer.faults["report"] = [(409, None)]
    slot.run()
    assert peer.jobs[stale].report is None
    assert slot.files() == []
    other = peer.offer("one", out=["out"])
    peer.jobs[other].report = {"killed": False}
    peer.jobs[other].command = None
    peer._live = lambda held: True  # type: ignore[method-assign]  # the job was closed by an operator while it ran
    peer.jobs[other].status = "closed"
    slot.run()
    assert slot.files() == []
    assert list(slot.journal.iterdir()) == []


def test_in_doubt_the_server_is_asked_what_became_of_the_job(slot: Slot, peer: Peer) -> None:
    slot.program("one", "echo 1 > $1")
    kept = peer.offer("one", "kept", out=["kept"])
    peer.faults["report"] = ["lost", (401, None)]  # the job token ran out before the answer came
    pilot = slot.start()
    until(lambda: peer.verbs("settled"))
    until(lambda: not list(slot.journal.iterdir()))
    assert slot.files() == ["kept"]
    peer.faults["report"] = [(400, None)]
    peer.lease_s = 0.8
    gone = peer.offer("one", "gone", out=["gone"])
    until(lambda: (gone, 1) in [tuple(pair) for body, _ in peer.verbs("settled") for pair in body["jobs"]])
    until(lambda: not list(slot.journal.iterdir()))
    assert slot.files() == ["kept"]
    assert peer.jobs[kept].status == "finished"
    pilot.terminate()
    assert pilot.wait(5) == 0


def test_a_lease_is_renewed_often_enough_while_a_job_runs(slot: Slot, peer: Peer) -> None:
    peer.lease_s = 0.8
    slot.program("some", "sleep 1.5; echo 1 > out")
    job = peer.offer("some", out=["out"])
    peer.faults["heartbeat"] = ["lost"]
    slot.run()
    assert slot.report(job)["status"] == "finished"
    assert len(peer.jobs[job].seen) >= 6


def test_a_command_ends_the_payload_and_the_report_says_killed(slot: Slot, peer: Peer) -> None:
    peer.lease_s = 1.5
    job = peer.offer(sleeper(slot), out=["out"])
    pilot = slot.start("--once")
    payload = pid_in(slot.base / "pid")
    peer.jobs[job].command = "tobekilled"
    assert pilot.wait(5) == 0
    assert not alive(payload)
    assert slot.report(job)["killed"] is True
    assert slot.report(job)["error"]["code"] == "KILLED"
    assert slot.files() == []


def test_a_refused_heartbeat_ends_the_payload_without_a_report(slot: Slot, peer: Peer) -> None:
    peer.lease_s = 1.5
    job = peer.offer(sleeper(slot), out=["out"])
    pilot = slot.start("--once")
    payload = pid_in(slot.base / "pid")
    peer.jobs[job].status = "failed"
    assert pilot.wait(5) == 0
    assert not alive(payload)
    assert peer.verbs("report") == []
    assert slot.files() == []


def test_a_payload_ends_when_the_lease_could_not_be_renewed_for_four_fifths(slot: Slot, peer: Peer) -> None:
    peer.lease_s = 2.0
    peer.offer(sleeper(slot), out=["out"])
    pilot = slot.start("--once")
    payload = pid_in(slot.base / "pid")
    peer.hang.add("heartbeat")
    last = time.monotonic()
    until(lambda: not alive(payload), 5)
    assert time.monotonic() - last < 10.0
    assert pilot.wait(5) == 0
    assert peer.verbs("report") == []


def test_a_job_that_is_not_ours_any_more_is_not_begun(slot: Slot, peer: Peer) -> None:
    slot.program("mark", f"touch {slot.base}/ran")
    peer.offer("mark")
    peer.faults["heartbeat"] = [(409, None)]
    slot.run()
    assert not (slot.base / "ran").exists()
    assert peer.verbs("report") == []


@pytest.mark.parametrize("verb", ["heartbeat", "report"])
def test_a_slot_whose_job_the_server_may_still_count_registers_anew(slot: Slot, peer: Peer, verb: str) -> None:
    """A pilot holds so many jobs at a time: one that it dropped would keep its slot idle until the lease of hours runs out."""
    slot.program("one", "echo 1 > out")
    peer.offer("one", out=["out"])
    peer.faults[verb] = [(401, None)]
    second = peer.offer("one", out=["out2"])
    slot.run()
    assert peer.jobs[second].status == "failed", "the payload wrote another file"
    assert len(peer.verbs("register")) == 2


def test_registration_refused_ends_the_pilot_and_a_lost_token_is_replaced(slot: Slot, peer: Peer) -> None:
    peer.faults["register"] = [(503, 0.05)]
    peer.faults["match"] = [(401, None)]
    slot.program("one", "true")
    job = peer.offer("one")
    pilot = slot.start("--once")
    assert pilot.wait(10) == 0
    assert slot.report(job)["status"] == "finished"
    assert [status for _, status in peer.verbs("register")] == [503, 201, 201]
    body = peer.verbs("register")[0][0]
    assert {"queue", "host", "slot", "pid", "cores", "memory_mb", "disk_mb", "walltime_s"} == set(body)
    peer.enrolment = "another"
    assert slot.run() == 2


def test_an_idle_pilot_rests_as_told_and_leaves_in_time(slot: Slot, peer: Peer) -> None:
    pilot = slot.start("--idle-exit", "1.0")
    began = time.monotonic()
    assert pilot.wait(10) == 0
    assert 1.0 < time.monotonic() - began < 15.0
    assert 3 < len(peer.verbs("match")) < 25  # a rest of 0.05 s between them, as the answers say, not one of a second
