"""A worker node whose disk is full is at fault itself: the report does not blame the input or its storage."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.small_disk import own_mounts, why_not

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
