"""The command as users have it: one file, run by a Python that has nothing but its standard library, in a folder of its own."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ALONE = (sys.executable, "-I", "-S")
"""Neither this folder nor any package can be imported."""


@dataclass(frozen=True)
class Said:
    """How a run ended."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[list[str]]:
        """What a pipe gets."""
        return [line.split("\t") for line in self.out.splitlines()]

    @property
    def documents(self) -> list[Any]:
        """JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class Broker:
    """The file, the folder where it runs and keeps its own, and its environment."""

    file: Path
    folder: Path
    environ: dict[str, str] = field(default_factory=dict)

    def __call__(self, *words: str, stdin: str = "", **environ: str) -> Said:
        env = {**self.environ, **environ}
        command = [*ALONE, str(self.file), *words]
        done = subprocess.run(command, cwd=self.folder, env=env, input=stdin, capture_output=True, text=True)
        assert "Traceback" not in done.stderr, done.stderr
        return Said(done.returncode, done.stdout, done.stderr)

    def begin(self, *words: str, **environ: str) -> subprocess.Popen[str]:
        """A run that goes on beside the test."""
        pipe = subprocess.PIPE
        env = {**self.environ, **environ}
        return subprocess.Popen([*ALONE, str(self.file), *words], cwd=self.folder, env=env, stdout=pipe, stderr=pipe, text=True)

    def on_terminal(
        self, *words: str, typed: str = "", at: str = "", interrupt: str = "", columns: int = 100, **environ: str
    ) -> Said:
        """On a terminal of so many columns; all that it shows is in `out`.

        What is typed is typed once `at` is seen, and Ctrl-C is pressed once `interrupt` is.
        """
        process, ours = pty.fork()
        if process == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever runs tests in the background has it ignored
            os.chdir(self.folder)
            env = {**self.environ, "COLUMNS": str(columns), "TERM": "xterm", **environ}
            os.execve(ALONE[0], [*ALONE, str(self.file), *words], env)  # noqa: S606
        shown = b""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    piece = os.read(ours, 65536)
                except OSError:  # the other side is closed
                    break
                if not piece:
                    break
                shown += piece
                if typed and at.encode() in shown:
                    os.write(ours, typed.encode())
                    typed = ""
                if interrupt and interrupt.encode() in shown:
                    os.kill(process, signal.SIGINT)
                    interrupt = ""
        else:
            os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
        os.close(ours)
        assert b"Traceback" not in shown, shown
        return Said(os.waitstatus_to_exitcode(status), shown.decode().replace("\r\n", "\n"), "")


def ended(process: subprocess.Popen[str], meanwhile: Callable[[], object] = lambda: None, seconds: float = 60) -> Said:
    """How a run ends, while something is done again and again."""
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        meanwhile()
        time.sleep(0.05)
    try:
        out, err = process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert "Traceback" not in err, err
    return Said(process.returncode, out, err)


def fields(said: Said) -> set[tuple[str, str]]:
    """Field and rule of each fault that standard error names."""
    found = set()
    for line in said.err.splitlines():
        if line.startswith("  ") and ") " not in line.partition("(")[0] and "): " in line:
            name, _, rest = line.strip().partition(" (")
            found.add((name, rest.partition("):")[0]))
    return found


def texts(rows: Sequence[Sequence[str]], n: int) -> list[str]:
    """A column of a pipe's rows."""
    return [row[n] for row in rows]
