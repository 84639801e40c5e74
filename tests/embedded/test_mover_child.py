"""The whole system brings a file from one storage endpoint to another, also after its mover was killed or stood still."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from broker_site.roof.embedded import Instance
from broker_site.roof.supervisor import System, running
from broker_site.roof.supervisor.system import Pilot

pytestmark = pytest.mark.servers
INSTANCE = f"moving-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"

WISHES = """
from pathlib import Path
from tests.moving import asked, marked_grid, stored_files, wanted
folder = Path({folder!r})
marked_grid(folder, "ALPHA", "BETA")
asked(*map(wanted, stored_files(folder, [b"first", b"second"], "ALPHA")))
"""
MORE = """
from pathlib import Path
from tests.moving import asked, stored_files, wanted
asked(*map(wanted, stored_files(Path({folder!r}), [b"third"], "ALPHA", dataset="e")))
"""


def prepare(system: System) -> tuple[Pilot, ...]:
    system.manage("migrate", "--verbosity", "0")
    return ()


@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGSTOP])
def test_files_are_brought_by_the_system_and_its_mover_is_kept_alive(tmp_path: Path, harm: signal.Signals) -> None:
    try:
        with running(INSTANCE, prepare=prepare, web=False, fresh=True, frozen_s=4.0) as system:
            system.manage("shell", "-c", WISHES.format(folder=str(tmp_path)))
            copies = [tmp_path / "BETA/demo/d/d.000000", tmp_path / "BETA/demo/d/d.000001"]
            _wait_for(copies)
            assert [copy.read_bytes() for copy in copies] == [b"first", b"second"]
            system.kill("mover", harm)
            system.manage("shell", "-c", MORE.format(folder=str(tmp_path)))
            _wait_for([tmp_path / "BETA/demo/e/e.000000"])
            assert system.children["mover"].starts >= 2
    finally:
        Instance(INSTANCE, environ={}).remove()


def _wait_for(files: list[Path], seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not all(file.exists() for file in files):
        assert time.monotonic() < end, f"not brought: {[file.name for file in files if not file.exists()]}"
        time.sleep(0.1)
