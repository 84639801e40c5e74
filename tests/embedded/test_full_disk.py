"""`make up` says when the disk with the data of PostgreSQL or with the logs is full, once, and when it has room again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.small_disk import own_mounts, why_not

SCRIPT = """
import subprocess, sys
from functools import partial
from pathlib import Path
from broker_site.roof.supervisor.console import Console
from broker_site.roof.supervisor.disks import full_disks

home = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", str(home)], check=True)
folders = {"the data of PostgreSQL": home / "data", "the logs": home / "logs"}
for folder in folders.values():
    folder.mkdir()
console = Console(print)

def look():
    for event in full_disks(folders):
        console.tell(event)

look()
(home / "ballast").write_bytes(bytes(80_000_000))
look()
look()
(home / "ballast").unlink()
look()
look()
"""


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_a_full_disk_is_told_of_once_and_when_it_has_room_again(tmp_path: Path) -> None:
    command = [*own_mounts(), sys.executable, "-c", SCRIPT, str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    what = "the disk with the data of PostgreSQL and the logs"
    assert said.splitlines() == [
        f"{what} is full, 24 MB are left: make room at {tmp_path}/data",
        f"{what} has room again: 104 MB, after 2 times",
    ]
