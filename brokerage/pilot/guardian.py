"""The guardian.

A process forked by the pilot that starts its payloads, holds them to their limits and leaves nothing of them alive.

It ends a payload when it is told to, when a limit is passed, when its lease was not renewed in time, and when the pilot is gone
(its pipe ends) - also when the pilot is stopped or was killed. It touches neither storage nor the server. It has one thread, so
that it may fork safely, and one payload at a time.

Pipe from the pilot, a line each: `run JSON` (the fields of `Program` and `until`), `until TIME` (end of the lease on the clock of
`clocks.now`), `stop GRACE_SECONDS`. Pipe to the pilot: one JSON object for each `run`, the fields of `PayloadOutcome`.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from brokerage.pilot import confinement, processes
from brokerage.pilot.clocks import Wake, now
from brokerage.pilot.samples import Samples

MB = 10**6
WATCH_S = 0.5
"""How often memory is looked at."""
GROWN = 1.05
"""Memory that is shared is counted exactly, which is slow, when so many times as much is seen as at the last time."""
DISK_WATCH_S = 2.0
"""How often, at most, the working folder is measured."""
WALLTIME_GRACE_S = 3.0
"""Between SIGTERM and SIGKILL for a payload over its walltime."""


@dataclass(frozen=True)
class Program:
    """What to start, where, and its limits (0 = none): seconds, MB of memory, MB in the working folder."""

    argv: list[str]
    folder: str
    environment: dict[str, str]
    stdout: str
    stderr: str
    walltime_s: float
    memory_mb: int
    disk_mb: int
    uid: int | None = None
    """The user as whom it runs; None: that of the pilot."""
    needed: Sequence[str] = ()
    """Folders that this user needs; those above them may be closed to it."""
    hidden: Sequence[str] | None = None
    """Folders that it shall not see, besides being able to write to none but its own; None: it sees what the pilot sees."""


@dataclass(frozen=True)
class PayloadOutcome:
    """How a payload ended. `reason`: exit, start (could not be started), walltime, memory, disk, lease, stop or orphaned.

    exit_code: of the program; 128 + n when signal n ended it; `message` has the system's words when it could not be started.
    Of all its processes: CPU seconds; the most memory that was seen, with what they share counted for each (RSS) and once (PSS);
    bytes read from and written to disks; the most that its working folder held; memory and processor time over time (`samples`).
    """

    reason: str
    exit_code: int
    signal: int = 0
    message: str = ""
    cpu_s: float = 0.0
    max_rss_mb: float = 0.0
    wall_s: float = 0.0
    max_pss_mb: float = 0.0
    read_bytes: int = 0
    written_bytes: int = 0
    work_mb: float = 0.0
    samples: dict[str, Any] = field(default_factory=dict)


def fork_guardian() -> tuple[int, int, int]:
    """Fork the guardian: (its pid, descriptor to command it, descriptor to hear from it). No other thread may run now."""
    commands_read, commands_write = os.pipe()
    results_read, results_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            _isolate(commands_read, results_write)
            Guardian(commands_read, results_write).serve()
            code = 0
        finally:  # whatever happens: nothing stays alive, and the pilot's own code is never entered
            if sys.exc_info()[0] is not None:
                traceback.print_exc()
            processes.end_descendants()
            os._exit(code)
    os.close(commands_read)
    os.close(results_write)
    return pid, commands_write, results_read


def _isolate(*keep: int) -> None:
    """Own session (a signal to the pilot's group misses it), no descriptor of the pilot's (sockets, locks), adopts orphans."""
    os.setsid()
    low = 3
    for fd in sorted(keep):
        os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX"))
    processes.become_subreaper()
    processes.set_name("gb-guardian")


class Guardian:
    """Listens to the pilot and serves one payload after the other."""

    def __init__(self, commands: int, results: int) -> None:
        self.commands = commands
        self.results = results
        self.wake = Wake()
        self.words = b""
        self.watch: Watch | None = None
        self.orphaned = False

    def serve(self) -> None:
        """Until the pilot is gone, or somebody sends SIGTERM."""
        self.wake.stop_on_signals()
        signal.signal(signal.SIGCHLD, lambda signum, frame: None)  # its arrival alone ends the wait
        ending = False
        while not ending:
            self._listen(3600.0 if self.watch is None else self.watch.pause())
            ending = self.orphaned or self.wake.stopping
            if self.watch is not None:
                if ending:
                    self.watch.end("stop", 0.0)
                self.watch.check()
                if self.watch.status is not None:
                    self._tell(self.watch.close())
                    self.watch = None

    def _listen(self, seconds: float) -> None:
        """Wait for words of the pilot; its end of the pipe closed means that it is dead."""
        if not self.wake.wait(seconds, self.commands):
            return
        read = os.read(self.commands, 65536)
        self.orphaned = not read
        *lines, self.words = (self.words + read).split(b"\n")
        for line in lines:
            verb, _, rest = line.decode().partition(" ")
            if verb == "run":
                self.watch = Watch(json.loads(rest))
            elif self.watch is not None and verb == "until":
                self.watch.until = float(rest)
            elif self.watch is not None:
                self.watch.end("stop", float(rest))

    def _tell(self, outcome: PayloadOutcome) -> None:
        with contextlib.suppress(BrokenPipeError):  # the pilot is dead, nobody wants to know
            os.write(self.results, json.dumps(asdict(outcome)).encode() + b"\n")


class Watch:
    """One payload, from its start until nothing of it is left."""

    def __init__(self, order: dict[str, Any]) -> None:
        """Start the program of a `run` line, unless its lease is over already (the pilot may have been stopped in between)."""
        self.until = float(order.pop("until"))
        self.program = Program(**order)
        self.reason: str | None = None
        self.message = ""
        self.kill_at: float | None = None
        self.peak_bytes = self.shared_once = self.looked_at = self.work_bytes = 0
        self.read_bytes = self.written_bytes = 0
        self.cpu_s = 0.0
        self.samples = Samples()
        self.payload = 0
        self.status: int | None = None
        self.started = now()
        self.next_watch = self.started + WATCH_S
        self.next_disk = self.started + DISK_WATCH_S
        if self.started >= self.until:
            self.reason, self.status = "lease", 0
            return
        try:
            self.payload = start(self.program)
        except OSError as error:
            self.status, self.reason, self.message = 127 << 8, "start", str(error.strerror)

    def pause(self) -> float:
        """Seconds until something has to be looked at."""
        times = [self.until, self.next_watch]
        if self.kill_at is not None:
            times.append(self.kill_at)
        if self.program.walltime_s and self.reason is None:
            times.append(self.started + self.program.walltime_s)
        return max(0.0, min(times) - now())

    def end(self, reason: str, grace: float) -> None:
        """Begin to end it: SIGTERM to its group, SIGKILL to everything after `grace` seconds. The first reason counts."""
        at = now() + grace
        if self.reason is None:
            self.reason = reason
            if self.payload and grace > 0:
                processes.send([-self.payload], signal.SIGTERM)
        self.kill_at = at if self.kill_at is None else min(at, self.kill_at)

    def check(self) -> None:
        """Reap; pass every limit once; SIGKILL when a grace is over."""
        self._reap(*processes.reap()[1])
        time = now()
        if self.status is not None:
            return
        if time >= self.until:
            self.end("lease", 0.0)
        if self.program.walltime_s and time >= self.started + self.program.walltime_s and self.reason is None:
            self.end("walltime", WALLTIME_GRACE_S)
        if time >= self.next_watch:
            self.next_watch = time + WATCH_S
            self._watch_memory()
        if time >= self.next_disk:
            self._watch_disk(time)
        if self.kill_at is not None and time >= self.kill_at:
            self._reap(*processes.end_descendants()[1])

    def close(self) -> PayloadOutcome:
        """End what the payload left behind; how it all ended."""
        self._reap(*processes.end_descendants()[1])
        status = self.status or 0
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        code = 128 + number if number else os.waitstatus_to_exitcode(status)
        wall = now() - self.started
        if self.reason != "start":
            self.work_bytes = max(self.work_bytes, folder_bytes(self.program.folder))
        memory, work = (self.peak_bytes / MB, wall, self.shared_once / MB), self.work_bytes / MB
        disk = (self.read_bytes, self.written_bytes)
        return PayloadOutcome(
            self.reason or "exit", code, number, self.message, self.cpu_s, *memory, *disk, work, self.samples.as_report()
        )

    def _watch_memory(self) -> None:
        """Resident memory of all descendants; only when that is too much the slower fair share, which decides."""
        pids = processes.descendants(os.getpid())
        cpu_s, resident = processes.usage(pids)
        self.samples.note(now() - self.started, resident, self.cpu_s + cpu_s)
        limit = self.program.memory_mb * MB
        if (limit and resident > limit) or resident > GROWN * self.looked_at:
            self.looked_at = max(self.looked_at, resident)
            fair = processes.proportional_bytes(pids)
            self.shared_once = max(self.shared_once, fair)
            if limit and resident > limit:
                resident = fair
                if fair > limit:
                    self.end("memory", 0.0)
        self.peak_bytes = max(self.peak_bytes, resident)

    def _watch_disk(self, time: float) -> None:
        """Size of the working folder, at most 2 % of the time spent on measuring it."""
        size = folder_bytes(self.program.folder)
        self.work_bytes = max(self.work_bytes, size)
        if self.program.disk_mb and size > self.program.disk_mb * MB:
            self.end("disk", 0.0)
        self.next_disk = now() + max(DISK_WATCH_S, 50 * (now() - time))

    def _reap(self, *ended: processes.EndedProcess) -> None:
        for one in ended:
            self.cpu_s += one.cpu_s
            self.read_bytes += one.read_bytes
            self.written_bytes += one.written_bytes
            self.peak_bytes = max(self.peak_bytes, one.resident)
            self.shared_once = max(self.shared_once, one.resident)
            if one.pid == self.payload:
                self.status = one.status


def start(program: Program) -> int:
    """Fork and execute the program in its own session under its limits; its pid. OSError when it cannot be executed."""
    guardian = os.getpid()
    errors_read, errors_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _become(program, guardian)
        except OSError as error:
            os.write(errors_write, str(error.errno).encode())
        finally:
            os._exit(127)
    os.close(errors_write)
    with os.fdopen(errors_read, "rb") as errors:
        number = errors.read()
    if number:
        os.waitpid(pid, 0)
        raise OSError(int(number), os.strerror(int(number)))
    return pid


def _become(program: Program, guardian: int) -> NoReturn:
    processes.die_with_parent(guardian)
    processes.gain_no_privileges()
    os.setsid()
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(signum, signal.SIG_DFL)
    _limit(resource.RLIMIT_CORE, 0)
    if (
        program.memory_mb
    ):  # address space is only a bound for bursts, the watch decides: many programs reserve far more than they use
        _limit(resource.RLIMIT_AS, 2 * program.memory_mb * MB + 1000 * MB)
    if program.disk_mb:
        _limit(resource.RLIMIT_FSIZE, program.disk_mb * MB)
    _offer_to_oom_killer()
    os.chdir(program.folder)
    for fd, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, program.stdout, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        (2, program.stderr, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ):
        os.dup2(os.open(path, flags, 0o640), fd)
        if fd and program.uid is not None:
            os.fchown(fd, program.uid, program.uid)
    if program.uid is not None:
        confinement.become(program.uid, program.needed)
    elif program.hidden is not None:
        confinement.confine(program.folder, program.hidden)
    processes.die_with_parent(guardian)  # a change of user takes that back
    os.execve(program.argv[0], program.argv, program.environment)  # noqa: S606 - a list, no shell


def _limit(kind: int, value: int) -> None:
    """Lower a limit; never above what the pilot itself may have."""
    hard = resource.getrlimit(kind)[1]
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (bound, bound))


def _offer_to_oom_killer() -> None:
    """When the machine runs out of memory the kernel shall take a payload, not the pilot or a database."""
    try:
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")
    except OSError:
        return  # a container may forbid it; only a preference is lost


def folder_bytes(folder: str) -> int:
    """Bytes on disk below a folder; what vanishes while looking counts nothing."""
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            try:
                total += (Path(root) / name).lstat().st_blocks * 512
            except FileNotFoundError:
                continue
    return total
