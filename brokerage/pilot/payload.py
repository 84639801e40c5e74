"""The pilot's side of a payload: what to start, and the guardian that runs it (`guardian.py` is the other side)."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from brokerage.pilot import processes
from brokerage.pilot.clocks import Wake, now
from brokerage.pilot.failure import Failure
from brokerage.pilot.guardian import Outcome, Program, fork_guardian
from brokerage.pilot.job import Job

MARKER = "GRIDBROKER_PAYLOAD"
WORK = "GRIDBROKER_WORK"
KILL_GRACE_S = 3.0
"""Between SIGTERM and SIGKILL when the server wants the job ended."""
STOP_GRACE_S = 1.0
"""The same when the pilot itself has to stop."""
END_PATIENCE_S = 20.0
"""How long the guardian may take to end everything before the pilot does it itself."""


def command(job: Job, software: Path) -> tuple[str, ...]:
    """The argument vector: `*.py` by this interpreter, anything else executed as it is.

    Failure TRF_NOT_FOUND or BAD_PARAMETERS.
    """
    name = job.transformation
    parts = name.split("/")
    path = str(software / name)
    if not name or name.startswith("/") or ".." in parts or "\0" in name or not Path(path).is_file():
        raise Failure("TRF_NOT_FOUND", f"no transformation {name!r} in the software of this site")
    try:
        arguments = shlex.split(job.parameters)
    except ValueError as problem:
        raise Failure("BAD_PARAMETERS", f"{problem}: {job.parameters[:200]}") from problem
    if any("\0" in argument for argument in arguments):
        raise Failure("BAD_PARAMETERS", "the parameters hold a NUL")
    if name.endswith(".py"):
        return (sys.executable, path, *arguments)
    if not os.access(path, os.X_OK):
        raise Failure("TRF_NOT_FOUND", f"transformation {name!r} is not executable")
    return (path, *arguments)


def marker(slot: str) -> str:
    """The beginning of the marker entry in the environment of every payload of a slot; job and epoch follow."""
    return f"{MARKER}={slot}:"


def environment(job: Job, slot: str, work: Path, folder: Path) -> dict[str, str]:
    """All that the payload sees of the environment: nothing of the pilot's own but PATH."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        MARKER: f"{slot}:{job.id}:{job.epoch}",
        WORK: str(work),
        "GRIDBROKER_QUEUE": job.queue,
        "GRIDBROKER_TASK": str(job.task_id),
        "GRIDBROKER_JOB": str(job.id),
        "GRIDBROKER_ATTEMPTNR": str(job.attempt_nr),
        "GRIDBROKER_CORES": str(job.cores),
    }


def end_leftovers(slot: str, work: Path) -> list[int]:
    """End payloads that an earlier pilot at this slot (same name, same work folder) left when it was killed.

    Their process ids.
    """
    return processes.end_marked(marker(slot), f"{WORK}={work}")


class Payload:
    """A payload and its guardian, from the fork on. Made while the pilot has no other thread."""

    def __init__(self, program: Program, wake: Wake) -> None:
        self._wake = wake
        self._guardian, self._commands, self._results = fork_guardian(program)
        self._heard = b""
        self._lock = threading.Lock()
        self._outcome: Outcome | None = None
        self.unkillable = False

    def go(self, until: float) -> None:
        """Start the program now; it must end by `until` unless `renew` says later."""
        self._tell(f"go {until}")

    def renew(self, until: float) -> None:
        """The lease holds until then (`clocks.now`). Any thread."""
        self._tell(f"until {until}")

    def usage(self) -> tuple[float, int]:
        """(CPU seconds, resident bytes) of what runs now."""
        if self._outcome is not None:
            return self._outcome.cpu_s, 0
        return processes.usage(processes.descendants(self._guardian)) if self._guardian else (0.0, 0)

    def wait(self, check: Callable[[], None]) -> Outcome:
        """How the program ended.

        `check` is called about once a second and when the thread is rung; what it raises ends the program first.
        """
        while self._outcome is None and self._listen(1.0):
            check()
        return self._outcome or Outcome("lost", 255)

    def end(self, grace: float) -> None:
        """End the program if it runs, and the guardian.

        Nothing of the payload is alive when this returns, or `unkillable` is set.
        """
        if not self._guardian:
            return
        self._tell(f"stop {grace}")
        limit = now() + grace + END_PATIENCE_S
        if self._wake.stopping:
            limit = now() + grace + 1.0
        while self._outcome is None and now() < limit and self._listen(max(0.0, limit - now())):
            continue
        if self._outcome is None:
            self._end_ourselves()
        else:
            os.waitpid(self._guardian, 0)
        with self._lock:
            self._guardian = 0
            os.close(self._commands)
            os.close(self._results)

    def _listen(self, seconds: float) -> bool:
        """Hear from the guardian; False when it is gone without a word, because somebody killed it."""
        if not self._wake.wait(seconds, self._results):
            return True
        read = os.read(self._results, 65536)
        *lines, self._heard = (self._heard + read).split(b"\n")
        for line in lines:
            if line.startswith(b"{"):
                self._outcome = Outcome(**json.loads(line))
        return bool(read)

    def _end_ourselves(self) -> None:
        """The guardian does not answer. Its orphans are this process's children by now, and will be when it is killed."""
        self.unkillable = not processes.end_descendants(2.0)[0]

    def _tell(self, text: str) -> None:
        with self._lock:
            if self._guardian:
                with contextlib.suppress(BrokenPipeError):  # it has ended; `wait` finds out
                    os.write(self._commands, text.encode() + b"\n")


def describe(outcome: Outcome, program: Program, last_words: str) -> Failure | None:
    """What an outcome means: None for success, else the failure to report. last_words: the end of its standard error."""
    if outcome.reason == "exit" and outcome.exit_code == 0:
        return None
    limits = {
        "walltime": ("WALLTIME", f"ran longer than {program.walltime_s:g} s"),
        "memory": ("PAYLOAD_MEMORY", f"used more than {program.memory_mb} MB of memory"),
        "disk": ("PAYLOAD_DISK", f"wrote more than {program.disk_mb} MB"),
        "start": ("PAYLOAD_START", f"cannot be started: {outcome.message}"),
        "lease": ("PAYLOAD_LOST", "was ended because its lease was not renewed in time"),
        "lost": ("PAYLOAD_LOST", "the process that watched the payload was killed"),
        "stop": ("PAYLOAD_LOST", "the process that watched the payload was told to stop by somebody else"),
    }
    if outcome.reason in limits:
        code, text = limits[outcome.reason]
        return Failure(code, _joined(text, last_words))
    how = f"killed by signal {outcome.signal}" if outcome.signal else f"exit code {outcome.exit_code}"
    if _out_of_memory(outcome, program, last_words):
        return Failure("PAYLOAD_MEMORY", _joined(f"ran out of memory ({how}; limit {program.memory_mb} MB)", last_words))
    return Failure("PAYLOAD_EXIT", _joined(how, last_words))


def _out_of_memory(outcome: Outcome, program: Program, last_words: str) -> bool:
    """It says so, or was killed from outside while near its limit (the kernel does that)."""
    said = any(word in last_words for word in ("MemoryError", "std::bad_alloc", "Cannot allocate memory", "OutOfMemoryError"))
    near = bool(program.memory_mb) and outcome.max_rss_mb > 0.8 * program.memory_mb
    return said or (outcome.signal == 9 and near)


def _joined(text: str, last_words: str) -> str:
    return ": ".join(part for part in (text, last_words) if part)[:500]
