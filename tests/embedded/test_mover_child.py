"""The whole system brings a file from one storage endpoint to another, also after its mover was killed or stood still."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
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
asked(*map(wanted, stored_files(Path({folder!r}), [{content!r}], "ALPHA", dataset={dataset!r})))
"""


def prepare(system: System) -> tuple[Pilot, ...]:
    system.manage("migrate", "--verbosity", "0")
    return ()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the storage endpoints lie."""
    return tmp_path_factory.mktemp("storage")


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """One that has brought files. It is harmed more than once, since it takes long to begin."""
    try:
        with running(INSTANCE, prepare=prepare, web=False, fresh=True, frozen_s=4.0) as made:
            made.manage("shell", "-c", WISHES.format(folder=str(folder)))
            copies = [folder / "BETA/demo/d/d.000000", folder / "BETA/demo/d/d.000001"]
            _wait_for(copies)
            assert [copy.read_bytes() for copy in copies] == [b"first", b"second"]
            yield made
    finally:
        Instance(INSTANCE, environ={}).remove()


@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGSTOP])
def test_files_are_brought_by_the_system_and_its_mover_is_kept_alive(system: System, folder: Path, harm: signal.Signals) -> None:
    before, dataset = system.children["mover"].starts, f"e{harm.value}"
    system.kill("mover", harm)
    more = MORE.format(folder=str(folder), content=harm.name.encode(), dataset=dataset)
    system.manage("shell", "-c", more)
    copy = folder / f"BETA/demo/{dataset}/{dataset}.000000"
    _wait_for([copy])
    assert copy.read_bytes() == harm.name.encode()
    assert system.children["mover"].starts > before


def _wait_for(files: list[Path], seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not all(file.exists() for file in files):
        assert time.monotonic() < end, f"not brought: {[file.name for file in files if not file.exists()]}"
        time.sleep(0.1)
