"""The pilot's side of payloads: what to start, and the hold on the guardian that runs it (`guardian.py` is the other side)."""

from __future__ import annotations

import contextlib
import errno
import inspect
import json
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from brokerage.pilot import merge_files, processes
from brokerage.pilot.clocks import Wake, now
from brokerage.pilot.guardian import PayloadOutcome, Program, fork_guardian
from brokerage.pilot.job import Failure, Job

MARKER = "GRIDBROKER_PAYLOAD"
WORK = "GRIDBROKER_WORK"
MERGING = "gridbroker-merge"
"""The transformation that every pilot has by itself (`merge_files`)."""
KILL_GRACE_S = 3.0
"""Between SIGTERM and SIGKILL when the server wants the job ended."""
STOP_GRACE_S = 1.0
"""The same when the pilot itself has to stop."""
END_PATIENCE_S = 20.0
"""How long the guardian may take to end everything before the pilot does it itself."""

NO_SPACE = os.strerror(errno.ENOSPC)
LEAST_FREE = 1 << 16
"""A payload that failed where no more bytes than this are left has filled the disk, even if it could not write down so."""


def command(job: Job, software: Path) -> list[str]:
    """The argument vector: `*.py` by this interpreter, the pilot's own program for merging too, anything else executed as it is.

    Failure NO_CONTAINER, TRF_NOT_FOUND or BAD_PARAMETERS.
    """
    if job.container:
        raise Failure("NO_CONTAINER", f"this pilot runs no containers, the job wants {job.container[:200]}")
    name = job.transformation
    path = str(software / name)
    if name != MERGING and not _is_transformation(name, Path(path)):
        raise Failure("TRF_NOT_FOUND", f"no transformation {name!r} in the software of this site")
    try:
        arguments = shlex.split(job.parameters)
    except ValueError as problem:
        raise Failure("BAD_PARAMETERS", f"{problem}: {job.parameters[:200]}") from problem
    if any("\0" in argument for argument in arguments):
        raise Failure("BAD_PARAMETERS", "the parameters hold a NUL")
    if name == MERGING:  # as a text: payloads may not be able to read the files of the pilot
        return [sys.executable, "-c", inspect.getsource(merge_files), *arguments]
    if name.endswith(".py"):
        return [sys.executable, path, *arguments]
    if not os.access(path, os.X_OK):
        raise Failure("TRF_NOT_FOUND", f"transformation {name!r} is not executable")
    return [path, *arguments]


def _is_transformation(name: str, path: Path) -> bool:
    """Whether it is a program of the software folder."""
    return bool(name) and not name.startswith("/") and ".." not in name.split("/") and "\0" not in name and path.is_file()


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


def end_leftovers(slot: str, work: Path, uid: int | None = None) -> list[int]:
    """End payloads that an earlier pilot at this slot (same name, same work folder) left when it was killed.

    `uid`: the user as whom they run. Their process ids.
    """
    return processes.end_marked(marker(slot), f"{WORK}={work}", users={os.geteuid(), os.geteuid() if uid is None else uid})


class Keeper:
    """The pilot's hold on its guardian, which runs one program at a time.

    Unkillable: something of a payload could not be ended.
    """

    def __init__(self, wake: Wake) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._guardian = self._commands = self._results = -1
        self._heard = b""
        self._running = False
        self.unkillable = False

    def ready(self) -> None:
        """Have a guardian.

        Only while the pilot has no other thread: forking copies just the calling one, with all locks as they are.
        """
        if self._guardian > 0 and os.waitpid(self._guardian, os.WNOHANG)[0]:
            self._drop()
        if self._guardian < 0:
            self._guardian, self._commands, self._results = fork_guardian()
            self._heard = b""

    def start(self, program: Program, until: float) -> None:
        """Start the program now; it must end by `until` (`clocks.now`) unless `renew` says later."""
        self._running = True
        self._tell("run " + json.dumps({**asdict(program), "until": until}))

    def renew(self, until: float) -> None:
        """The lease of what runs holds until then. Any thread."""
        if self._running:
            self._tell(f"until {until}")

    def usage(self) -> tuple[float, int]:
        """(CPU seconds, resident bytes) of what runs now. Any thread."""
        guardian = self._guardian
        return processes.usage(processes.descendants(guardian)) if self._running and guardian > 0 else (0.0, 0)

    def wait(self, check: Callable[[], None]) -> PayloadOutcome:
        """How the program ended.

        `check` is called about once a second and whenever the thread is rung; what it raises passes through, and `end` is due.
        """
        while True:
            outcome = self._listen(1.0)
            if outcome is not None:
                return outcome
            check()

    def end(self, grace: float) -> None:
        """End the program if it runs. Nothing of it is alive when this returns, or `unkillable` is set."""
        if not self._running:
            return
        self._tell(f"stop {grace}")
        limit = now() + grace + (1.0 if self._wake.stopping else END_PATIENCE_S)
        while now() < limit:
            if self._listen(limit - now()) is not None:
                return
        self._give_up()

    def close(self) -> None:
        """Let the guardian go, at the end of the pilot's life."""
        self.end(0.0)
        if self._guardian > 0:
            self._drop()
            processes.end_descendants(2.0)

    def _listen(self, seconds: float) -> PayloadOutcome | None:
        """The outcome, if it comes within `seconds`. A guardian that is gone without a word was killed by somebody."""
        if not self._wake.wait(max(0.0, seconds), self._results):
            return None
        read = os.read(self._results, 65536)
        self._heard += read
        if not read:
            self._give_up()
            return PayloadOutcome("lost", 255)
        line, end, rest = self._heard.partition(b"\n")
        if not end:
            return None
        self._heard, self._running = rest, False
        return PayloadOutcome(**json.loads(line))

    def _give_up(self) -> None:
        """The guardian is dead or does not answer: end it and what is left, all of which are this process's descendants."""
        self._running = False
        self._drop()
        self.unkillable = not processes.end_descendants(2.0)[0]

    def _drop(self) -> None:
        with self._lock:
            os.close(self._commands)
            os.close(self._results)
            self._guardian = -1

    def _tell(self, text: str) -> None:
        with self._lock:
            if self._guardian > 0:
                rest = memoryview(text.encode() + b"\n")
                with contextlib.suppress(BrokenPipeError):  # it was killed; listening finds out
                    while rest:
                        rest = rest[os.write(self._commands, rest) :]


def describe(outcome: PayloadOutcome, program: Program, last_words: str, free: int | None = None) -> Failure | None:
    """What an outcome means: None for success, else the failure to report.

    last_words: the end of its standard error, the last line first; free: bytes left where it wrote, None where that is not known.
    """
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
    if program.disk_mb and (outcome.exit_code == 128 + signal.SIGXFSZ or "File too large" in last_words):
        return Failure("PAYLOAD_DISK", _joined(f"wrote a file of more than {program.disk_mb} MB ({how})", last_words))
    if NO_SPACE in last_words or (free is not None and free < LEAST_FREE):
        return Failure("PAYLOAD_DISK", _joined(f"no space left on the disk of the worker node ({how})", last_words), of_node=True)
    if _out_of_memory(outcome, program, last_words):
        return Failure("PAYLOAD_MEMORY", _joined(f"ran out of memory ({how}; limit {program.memory_mb} MB)", last_words))
    last, _, before = last_words.partition("\n")
    return Failure("PAYLOAD_EXIT", f"{last} ({how})\n{before}".rstrip() if last else how)


def _out_of_memory(outcome: PayloadOutcome, program: Program, last_words: str) -> bool:
    """It says so, or was killed from outside while near its limit (the kernel does that)."""
    no_memory = any(
        word in last_words for word in ("MemoryError", "std::bad_alloc", "Cannot allocate memory", "OutOfMemoryError")
    )
    near = bool(program.memory_mb) and outcome.max_rss_mb > 0.8 * program.memory_mb
    return no_memory or (outcome.signal == signal.SIGKILL and near)


def _joined(text: str, last_words: str) -> str:
    return ": ".join(part for part in (text, last_words) if part)
