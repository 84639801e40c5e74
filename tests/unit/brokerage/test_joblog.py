"""What a payload put in the place of its streams does not hold up its pilot: the log has nothing of it."""

from __future__ import annotations

import os
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brokerage.pilot.joblog import Log, ends, last_lines, pack


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    """What hangs fails."""

    def hangs(*_: Any) -> None:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[Path]:
    """A pipe with a writer that writes nothing: who opens it reads for ever."""
    path = tmp_path / "stdout"
    os.mkfifo(path)
    held = os.open(path, os.O_RDWR)
    yield path
    os.close(held)


def test_a_pipe_in_place_of_a_stream_is_left_out(fifo: Path, tmp_path: Path) -> None:
    (tmp_path / "stderr").write_text("said\n")
    members = {"stdout": fifo, "stderr": tmp_path / "stderr", "folder": tmp_path, "gone": tmp_path / "gone"}
    pack(tmp_path / "log.tgz", members)
    with tarfile.open(tmp_path / "log.tgz") as tar:
        assert tar.getnames() == ["stderr"]
    assert ends(members, 1000) == "--- stderr ---\nsaid\n"
    assert last_lines(fifo) == ""


def test_a_pipe_that_nobody_reads_in_place_of_the_log_of_a_pilot_takes_its_lines(tmp_path: Path) -> None:
    log = Log("1")
    log.job_file = tmp_path / "pilot.log"
    os.mkfifo(log.job_file)
    log.say("still there")
