"""One attempt at a job, from the first heartbeat to the settled report.

Everything made on the way is gone afterwards, but for settled outputs.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brokerage.pilot import confinement, ticket
from brokerage.pilot.clocks import Wake, now, wall_time
from brokerage.pilot.guardian import PayloadOutcome, Program
from brokerage.pilot.job import Failure, Job, LeaseLost, Ticket
from brokerage.pilot.joblog import Log, ends, last_lines, pack
from brokerage.pilot.journal import Journal
from brokerage.pilot.lease import Lease
from brokerage.pilot.log_streams import store_streams
from brokerage.pilot.messages import Message, report
from brokerage.pilot.metadata import read_metadata
from brokerage.pilot.payload import KILL_GRACE_S, STOP_GRACE_S, Keeper, command, describe, environment
from brokerage.pilot.server import Answer, Server
from brokerage.pilot.stage_in import NO_SPACE, stage_in
from brokerage.pilot.stage_out import StoredOutput, stage_out

REPORT_GRACE_S = 3.5
"""How long after a request to stop the report is still tried."""
MEMORY_TOLERANCE = 1.25
"""A payload may use so many times the memory that its job asks for: that is what such jobs use, less what the brokerage took off
to find it a queue, and they vary."""
LOG_END_BYTES = 65_536
"""So much of a log comes with the report where the log cannot be stored."""


@dataclass(frozen=True)
class PilotPlace:
    """Where a pilot works: server address, slot, absolute folders for work, software and journals, and a file for operations."""

    url: str
    slot: str
    work: Path
    software: Path
    journal: Path
    operations: Path | None = None
    payload_uid: int | None = None
    """The user as whom payloads run, where the pilot is root; None: the pilot's own."""
    hidden: tuple[Path, ...] | None = None
    """Folders that payloads do not see, where they get a user namespace; None: they get none."""


class Run:
    """The attempt."""

    def __init__(self, job: Job, place: PilotPlace, server: Server, keeper: Keeper, wake: Wake, log: Log) -> None:
        self.job, self.place, self.server, self.keeper, self.wake, self.log = job, place, server, keeper, wake, log
        self.base = place.work / f"job-{job.name}"
        self.folder = self.base / "run"
        self.journal: Journal | None = None
        self.lease = Lease(job, place.url, wake, keeper)
        self.lease.renewed = self._keep_ticket
        self.outcome: PayloadOutcome | None = None
        self.metadata: dict[str, Any] | None = None
        self.started = wall_time()
        self.over = False
        self.node_fault = ""
        """What of this node made the job fail."""

    def execute(self) -> bool:
        """Run the job and report it, or drop it when its lease is lost. Whether the server said that it is over."""
        began = now()
        self.log.say(f"job {self.job.name} of task {self.job.task_id}: {self.job.transformation}, attempt {self.job.attempt_nr}")
        try:
            message = self._work()
        except LeaseLost:
            self.keeper.end(0.0)
            self._withdraw()
            self.log.say(f"job {self.job.name} dropped: {self.lease.lost}")
            message = None
        finally:
            self.lease.close()
        if message is None or self._report(message):
            ticket.drop(self.place.work)
        self.log.say(f"job {self.job.name} over after {now() - began:.3f} s")
        self.log.job_file = None
        remove_folder(self.base)
        return self.over

    def _keep_ticket(self, token: str) -> None:
        ticket.keep(self.place.work, Ticket(self.job.id, self.job.epoch, token))

    def check(self) -> None:
        """Raise when the work must not go on. Called before every step that others see and between the chunks of copies."""
        if not self.lease.holds():
            raise LeaseLost
        if self.lease.kill_asked:
            raise Failure("KILLED", "killed by a command")
        if self.wake.stopping:
            raise Failure("PILOT_STOPPED", "the pilot was told to stop")

    def _work(self) -> Message:
        """The final report. Raises LeaseLost."""
        try:
            self._beat("starting" if self.job.inputs else "running")
            written = self._run()
        except Failure as failure:
            self.node_fault = failure.message if failure.of_node else ""
            self.keeper.end(
                KILL_GRACE_S if failure.code == "KILLED" else STOP_GRACE_S if failure.code == "PILOT_STOPPED" else 0.0
            )
            self._withdraw()
            self.log.say(f"job {self.job.name} fails: {failure.code}: {failure.message}")
            logs = self._store_logs(failure)
            if not self.lease.holds():
                raise LeaseLost from failure
            log_end = "" if logs else ends(self._streams(), LOG_END_BYTES)
            return report(self.job.id, failure, self.started, self.outcome, logs, log_end)
        if not self.lease.holds():
            raise LeaseLost
        return report(self.job.id, None, self.started, self.outcome, written, metadata=self.metadata)

    def _run(self) -> list[StoredOutput]:
        """Stage in, run, stage out. Raises Failure, also when the pilot's own disk does not work."""
        try:
            return self._stages()
        except OSError as problem:
            words = f"{problem.strerror or problem}: {problem.filename or self.base}"
            raise Failure(
                "PILOT_ERROR", words, of_node=self.outcome is None or problem.errno in (*NO_SPACE, errno.EROFS)
            ) from problem

    def _stages(self) -> list[StoredOutput]:
        self.base.mkdir()
        self.base.chmod(0o700 if self.place.payload_uid is None else 0o711)
        self.folder.mkdir(mode=0o700)
        self.log.job_file = self.base / "pilot.log"
        program = self._program()
        self.keeper.ready()
        self.lease.keep()
        if self.job.inputs:
            copied = stage_in(self.job.inputs, self.folder, self.check)
            self.log.say(f"staged in {len(self.job.inputs)} files, {copied} bytes")
            self._beat("running")
        if self.place.payload_uid is not None:
            confinement.give_tree(self.folder, self.place.payload_uid)
        self.check()
        self.keeper.start(program, self.lease.until)
        self.outcome = self.keeper.wait(self.check)
        self.check()
        last_words = last_lines(Path(program.stderr)) if self.outcome.exit_code else ""
        disk = os.statvfs(self.folder)
        failure = describe(self.outcome, program, last_words, disk.f_bavail * disk.f_frsize)
        if failure is not None:
            raise failure
        if self.job.metadata_file:
            self.metadata = read_metadata(self.folder, self.job.metadata_file, self.place.payload_uid)
        return self._stage_out()

    def _program(self) -> Program:
        return Program(
            argv=command(self.job, self.place.software),
            folder=str(self.folder),
            environment=environment(self.job, self.place.slot, self.place.work, self.folder),
            stdout=str(self.base / "stdout"),
            stderr=str(self.base / "stderr"),
            walltime_s=self.job.walltime_s,
            memory_mb=round(self.job.memory_mb * MEMORY_TOLERANCE),
            disk_mb=self.job.disk_mb,
            uid=self.place.payload_uid,
            needed=[str(self.folder), str(self.place.software), *confinement.python_folders()],
            hidden=None if self.place.hidden is None else [str(folder) for folder in self.place.hidden],
        )

    def _stage_out(self) -> list[StoredOutput]:
        for output in self.job.outputs:
            if output.is_log:
                self._pack_log(self.folder / output.lfn, self.place.payload_uid)
        if not self.job.outputs:
            return []
        try:
            self.journal = Journal(self.place.journal, self.job.name)
        except OSError as problem:
            raise Failure("STAGEOUT_FAILED", f"journal: {problem.strerror}") from problem
        written = stage_out(self.job.outputs, self.folder, self.job.name, self.journal, self.check, self.place.payload_uid)
        self.log.say(f"staged out {len(written)} files, {sum(entry.sum.size for entry in written)} bytes")
        self._store_streams(self.journal, self.check)
        return written

    def _beat(self, status: str) -> None:
        """Tell the server the status; the job only goes on when the server agrees that it is ours."""
        if not self.lease.beat(self.server, status):
            self.check()
            raise LeaseLost
        self.check()

    def _withdraw(self) -> None:
        """Remove from storage what was written there."""
        if self.journal is not None:
            try:
                self.journal.discard()
            except OSError as problem:
                self.log.say(f"cannot remove outputs of job {self.job.name} now, a later clean-up will: {problem}")
            self.journal = None

    def _report(self, message: Message) -> bool:
        """Report until there is a definite answer; keep the outputs only when the server has them as finished.

        Whether the server answered.

        Of a failed job only the log stands there, which the server has registered with the report.

        An answer other than 200 with a state and 409 leaves in doubt whether an earlier, unanswered report was taken: the journal
        stays and the clean-up asks for the outcome.
        """
        (_, body), sent = message, wall_time()
        answer = self.server.ask(*message, self.lease.token, stop_grace_s=REPORT_GRACE_S)
        error = body["error"]
        summary = f"job {self.job.name} {body['status']}" + (f" {error['code']}: {error['message']}" if error else "")
        recorded = (
            None
            if answer is None
            else answer.body.get("status")
            if answer.status == 200
            else f"refused with status {answer.status}"
        )
        self.log.say(f"{summary}; recorded: {recorded}")
        if answer is not None:
            self._note(body, sent, answer)
            self.over = answer.status in (200, 409)
        if self.journal is None:
            return answer is not None
        if answer is None or recorded is None or answer.status not in (200, 409):
            self.journal.leave()
        elif recorded == "finished" or (answer.status == 200 and error):
            self.journal.settle()
        else:
            self._withdraw()
        return answer is not None

    def _note(self, body: dict[str, Any], sent: str, answer: Answer) -> None:
        """Add a JSON line to the file of operations, a record outside the database, which several pilots may share.

        One write, so that lines of several pilots do not mix, and a killed pilot leaves whole lines.
        """
        if self.place.operations is None:
            return
        line = {
            "operation": "report",
            "actor": self.place.slot,
            "sent": sent,
            "acked": wall_time(),
            "answer": answer.status,
            "job": self.job.id,
            "epoch": self.job.epoch,
            "status": body["status"],
            "outputs": body["outputs"],
            "recorded": answer.body.get("status") if answer.status == 200 else None,
        }
        with contextlib.suppress(OSError):  # a full disk must not stop the work
            fd = os.open(self.place.operations, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
            try:
                os.write(fd, json.dumps(line).encode() + b"\n")
            finally:
                os.close(fd)

    def _streams(self) -> dict[str, Path]:
        """What the log of the job is made of."""
        return {name: self.base / name for name in ("pilot.log", "stdout", "stderr")}

    def _pack_log(self, archive: Path, owner: int | None = None) -> None:
        try:
            pack(archive, self._streams(), self.job.log_max)
            if owner is not None:
                os.chown(archive, owner, owner, follow_symlinks=False)
        except OSError as problem:
            words = f"log: {problem.strerror or problem}"
            raise Failure("STAGEOUT_FAILED", words, of_node=problem.errno in NO_SPACE) from problem

    def _store_logs(self, failure: Failure) -> list[StoredOutput]:
        """Bring the log of a job that failed to its storage; nothing where that cannot be. Raises LeaseLost.

        A pilot that is told to stop has no time for it. The working folder goes first: it may have filled the disk.
        """
        logs = [output for output in self.job.outputs if output.is_log]
        if not logs or failure.code == "PILOT_STOPPED":
            return []
        folder = self.base / "log"
        try:
            remove_folder(self.folder)
            folder.mkdir()
            for output in logs:
                self._pack_log(folder / output.lfn)
            self.journal = Journal(self.place.journal, self.job.name)
            written = stage_out(logs, folder, self.job.name, self.journal, self._check_lease)
            self._store_streams(self.journal, self._check_lease)
            return written
        except (Failure, OSError) as problem:
            self._withdraw()
            self.log.say(f"the log of job {self.job.name} cannot be stored: {problem}")
            return []

    def _store_streams(self, journal: Journal, check: Callable[[], None]) -> None:
        """Store what the logs are made of beside them. Raises LeaseLost; all else that goes wrong is told, and no harm."""
        logs = [output for output in self.job.outputs if output.is_log]
        members, most, folder = self._streams(), self.job.log_max, self.base / "streams"
        if why := store_streams(logs, members, most, folder, self.job.name, journal, check):
            self.log.say(f"no plain files beside the log of job {self.job.name}: {why}")

    def _check_lease(self) -> None:
        if not self.lease.holds():
            raise LeaseLost


def remove_folder(path: Path) -> None:
    """Remove a folder with all below it, whatever rights a payload gave to it; what still cannot be removed stays."""
    shutil.rmtree(path, ignore_errors=True)
    if path.is_dir():
        with contextlib.suppress(OSError):
            path.chmod(stat.S_IRWXU)
            for root, folders, _ in os.walk(path):
                for name in folders:
                    if not (Path(root) / name).is_symlink():
                        (Path(root) / name).chmod(stat.S_IRWXU)
        shutil.rmtree(path, ignore_errors=True)
