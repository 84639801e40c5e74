"""What a submitter can make a pilot do: payloads run with rights of their own, and a pilot with more rights is not led astray."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pilot.conftest import ROOT, Slot, pid_in, until
from tests.pilot.peer import Peer

UID, PILOT_UID = 1_900_000_001, 1_900_000_002
TRIES = """
id -u > who
cat /proc/$PPID/environ > pilot_environ 2> /dev/null
cat {secret} > secret 2> /dev/null
echo mine > {outside} 2> /dev/null
echo mine > {beside} 2> /dev/null
touch stayed
exit 0
"""
AS_USER = f"""
import os, sys
from brokerage.pilot.confinement import become, python_folders
become({PILOT_UID}, [*python_folders(), *sys.argv[1:3]])
os.execv(sys.executable, [sys.executable, *sys.argv[3:]])
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give payloads a user of their own")


@pytest.fixture
def open_slot(peer: Peer) -> Iterator[Slot]:
    """A slot in a folder that every user can pass, as the supervisor makes them."""
    base = Path(tempfile.mkdtemp(prefix="gb-slot-"))
    base.chmod(0o711)
    made = Slot(base, peer)
    (base / "secret").chmod(0o600)
    for folder in (base / "work", made.work):
        folder.mkdir(mode=0o711, exist_ok=True)
    yield made
    made.close()
    shutil.rmtree(base)


def tries(slot: Slot) -> str:
    """A payload that tries what it should not; its name."""
    outside, beside = slot.base / "outside", slot.work / "beside"
    return slot.program("tries", TRIES.format(secret=slot.base / "secret", outside=outside, beside=beside))


def as_plain_user(slot: Slot, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Python with these arguments as a user who is not root, wherever Python lies."""
    return subprocess.run(
        [sys.executable, "-c", AS_USER, str(slot.base), str(slot.storage), *arguments], cwd=ROOT, capture_output=True
    )


def stored(slot: Slot, name: str) -> str:
    return (slot.storage / name).read_text()


@as_root
def test_a_payload_of_a_root_pilot_has_its_own_user_and_its_folder_and_nothing_else(open_slot: Slot, peer: Peer) -> None:
    slot = open_slot
    log = {"lfn": "job.log.tgz", "storage": "DISK", "path": str(slot.storage / "job.log.tgz"), "type": "log"}
    outputs = [
        {"lfn": name, "storage": "DISK", "path": str(slot.storage / name), "type": "output"}
        for name in ("who", "secret", "pilot_environ", "stayed", "in.dat")
    ]
    job = peer.offer(tries(slot), inputs=[slot.stored("in.txt", b"abc")], outputs=[*outputs[:4], log])
    assert slot.run("--payload-uid", str(UID)) == 0
    assert slot.report(job)["status"] == "finished", slot.report(job)
    assert stored(slot, "who") == f"{UID}\n"
    assert (stored(slot, "secret"), stored(slot, "pilot_environ")) == ("", "")
    assert not (slot.base / "outside").exists()
    assert not (slot.work / "beside").exists()
    assert (slot.storage / "job.log.tgz").stat().st_size > 100
    assert [entry.name for entry in slot.work.iterdir()] == ["slot.lock"], "the folder of the job is gone"


@as_root
def test_software_and_python_may_lie_where_only_root_can_go(peer: Peer, slot: Slot) -> None:
    """As in a clone below /root: the closed folder is there for the payload with nothing else in it."""
    slot.base.chmod(0o700)
    (slot.base / "mine").write_text("x")
    look = f"[os.getuid(), os.path.exists({str(slot.base / 'mine')!r}), os.path.exists({str(slot.software)!r})]"
    slot.program("look.py", f"import os, json; json.dump({look}, open('seen', 'w'))")
    job = peer.offer("look.py", out=["seen"], inputs=[slot.stored("in.txt", b"abc")])
    slot.run("--payload-uid", str(UID))
    assert slot.report(job)["status"] == "finished", slot.report(job)
    assert json.loads(stored(slot, "seen")) == [UID, False, True]


@as_root
def test_links_of_a_payload_lead_a_root_pilot_nowhere(open_slot: Slot, peer: Peer) -> None:
    slot = open_slot
    secret, kept = slot.base / "secret", slot.base / "kept.tgz"
    kept.write_text("precious")
    slot.program("soft", f"ln -s {secret} out")
    slot.program("inner", f"mkdir d; ln -s {slot.base} d/up; ln -s d/up/secret out")
    slot.program("log", f"ln -s {kept} job.log.tgz; echo x > out")
    slot.program("report", "mkfifo jobReport.json; echo x > out2")
    soft, inner = (peer.offer(name, out=["out"]) for name in ("soft", "inner"))
    log = {"lfn": "job.log.tgz", "storage": "DISK", "path": str(slot.storage / "job.log.tgz"), "type": "log"}
    out = {"lfn": "out", "storage": "DISK", "path": str(slot.storage / "out"), "type": "output"}
    logged, report = peer.offer("log", outputs=[out, log]), peer.offer("report", out=["out2"])
    slot.run("--payload-uid", str(UID))
    for job in (soft, inner):
        assert slot.report(job)["error"]["code"] == "OUTPUT_MISSING"
    assert slot.report(logged)["status"] == "finished"
    assert kept.read_text() == "precious"
    assert slot.report(report)["status"] == "finished", "a pipe as report is no report, and nobody waits for it"


@as_root
def test_a_hard_link_to_a_file_of_others_is_no_output(open_slot: Slot, peer: Peer, tmp_path: Path) -> None:
    """Linux usually forbids such links (fs.protected_hardlinks); where it does not, the file's owner tells."""
    from brokerage.pilot.copying import open_regular

    own, foreign = tmp_path / "own", tmp_path / "foreign"
    own.write_text("x")
    os.chown(own, UID, UID)
    foreign.write_text("x")
    (tmp_path / "link").hardlink_to(foreign)
    os.close(open_regular(own, UID))
    with pytest.raises(OSError, match="not a regular file of the payload"):
        open_regular(tmp_path / "link", UID)


@as_root
def test_a_payload_of_another_user_ends_with_its_pilot(open_slot: Slot, peer: Peer) -> None:
    slot = open_slot
    shared = slot.base / "shared"
    shared.mkdir()
    os.chown(shared, UID, UID)
    slot.program("stays", f"echo $$ > {shared}/pid; setsid sleep 100 & sleep 100")
    peer.offer("stays")
    pilot = slot.start("--payload-uid", str(UID))
    payload = pid_in(shared / "pid")
    pilot.kill()
    until(lambda: not Path(f"/proc/{payload}").exists())


@pytest.mark.parametrize("uid", ["0", "-1", "me"])
def test_a_wrong_user_for_payloads_is_refused(uid: str, slot: Slot) -> None:
    pilot = slot.start("--payload-uid", uid)
    assert pilot.wait(20) == 2
    assert "--payload-uid" in (slot.base / "pilot.err").read_text()


@as_root
def test_a_payload_of_a_plain_user_is_confined_where_the_system_allows_it(open_slot: Slot, peer: Peer) -> None:
    slot = open_slot
    for path in (slot.base, *slot.base.rglob("*"), slot.storage):
        os.chown(path, PILOT_UID, PILOT_UID)
    if as_plain_user(slot, "-m", "brokerage.pilot.confinement", str(slot.base)).returncode:
        pytest.skip("this system gives plain users no namespaces")
    (slot.base / "hidden").mkdir()
    (slot.base / "hidden" / "secret").write_text("x")
    seen = slot.base / "hidden" / "secret"
    slot.program("tries", f"cat {seen} > secret; echo mine > {slot.base}/outside; touch {slot.work}/x; id -u > who")
    job = peer.offer("tries", out=["who", "secret"], inputs=[slot.stored("in.txt", b"abc")])
    ran = as_plain_user(slot, *slot.command("--idle-exit", "0", "--hide", str(slot.base / "hidden"))[1:])
    assert ran.returncode == 0, ran.stderr
    assert slot.report(job)["status"] == "finished", slot.report(job)
    assert (stored(slot, "who"), stored(slot, "secret")) == (f"{PILOT_UID}\n", "")
    assert not (slot.base / "outside").exists()
    assert not (slot.work / "x").exists()
