"""`get`: outputs as files; `logs` and `job log`: what a job wrote."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from broker_site.client.command import terminal
from broker_site.client.command.grammar import ONE, TIMEOUT, URL, WEB, Verb, option
from broker_site.client.command.session import Session, numbers
from broker_site.client.command.watching import EVERY, LEAST_EVERY_S, SILENCE_S
from broker_site.client.errors import OK, TASK_FAILED, BrokerError, Refused, TimedOut, Unusable
from broker_site.client.jobs import Job


def get(session: Session) -> int:
    """Download what is on storage; each file is held against size and checksum. The exit code of the first that failed."""
    options, outputs = session.options, session.client.outputs
    (number,) = numbers([options.id], session.stdin)
    kind = "log" if options.log else "output"
    files: Iterable[Any] = outputs.of_job(number, kind) if options.job else outputs.of_task(number, kind)
    folder = Path(options.dir)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise Unusable(f"{folder} cannot be written to", str(problem.strerror)) from None
    code, n = OK, 0
    for file in (file for file in files if not options.name or fnmatchcase(str(file["lfn"]), options.name)):
        n += 1
        try:
            new = outputs.save(file, folder, options.force)
        except BrokerError as problem:
            session.complain(problem)
            code = code or problem.exit_code
        except OSError as problem:
            raise Unusable(f"{folder} cannot be written to", str(problem.strerror)) from None
        else:
            session.printer.line(terminal.safe(f"{folder / str(file['lfn'])}") + ("" if new else "\tthere already"))
    if not n:
        detail = f"{'job' if options.job else 'task'} {number} has no such file on storage"
        raise Refused(404, {"title": f"No {kind} to get", "detail": detail})
    return code


def log(session: Session) -> int:
    """Each file of the log under its name. What is no text of a terminal is written out, unless --raw.

    With --follow once the job has ended, for a pilot stores the log then: exit code 1 where it has not finished.
    """
    (number,) = numbers([session.options.id], session.stdin)
    if session.page(f"/jobs/{number}/log/"):
        return OK
    well = not session.options.follow or _ended(session, number).well
    streams = session.client.outputs.log(number, end=session.options.end)
    if streams is None:
        where = session.client.connection.address(f"/jobs/{number}/log/")
        raise Refused(404, {"title": "No log on storage", "detail": f"of job {number}"}, f"what came with its report: {where}")
    for stream in streams:
        if len(streams) > 1:
            session.printer.line(terminal.safe(f"==> {stream.name} <=="))
        for line in stream.text.splitlines():
            session.printer.line(line if session.options.raw else terminal.safe(line, keep="\t"))
    return OK if well else TASK_FAILED


def _ended(session: Session, number: int) -> Job:
    """The job once it has ended; each state is told on the way. Raises TimedOut."""
    options, job = session.options, session.client.jobs.get(number)
    session.on_interrupt = "no longer looking; the job goes on"
    session.client.connection.silence_s = SILENCE_S
    end = None if options.timeout is None else session.now() + options.timeout
    told = ""
    while True:
        if job.status != told:
            told = job.status
            where = job.row["computing_queue"]
            session.tell(f"job {number} {told}{f' at {where}' if where else ''}")
        if job.ended:
            return job
        left = None if end is None else end - session.now()
        if left is not None and left <= 0:
            raise TimedOut(f"Not ended after {options.timeout:g} s", f"job {number} is {job.status}", "it goes on")
        pause = max(options.every, LEAST_EVERY_S)
        time.sleep(pause if left is None else min(pause, left))
        job.refresh()


_LOG = (
    ONE,
    option(
        "-f", "--follow", action="store_true", help="once the job has ended, which is when its log is stored; states till then"
    ),
    option("--end", action="store_true", help="only the last 64 kB of each file, which the server reads without the rest"),
    option("--raw", action="store_true", help="as it is, control characters too"),
    URL,
    WEB,
    TIMEOUT,
    EVERY,
)
VERBS: Sequence[Verb] = (
    Verb(
        ("get",),
        "download the outputs of a task, or of a job",
        get,
        (
            option("id", metavar="ID", help="number of the task"),
            option("--job", action="store_true", help="it is the number of a job"),
            option("-d", "--dir", default=".", metavar="DIR", help="where to (%(default)s)"),
            option("--name", metavar="PATTERN", help="only files of such names; * and ? are wildcards"),
            option("--log", action="store_true", help="the logs instead of the outputs"),
            option("-f", "--force", action="store_true", help="write over other files of the same names"),
        ),
    ),
    Verb(("logs",), "print the log of a job", log, _LOG),
    Verb(("job", "log"), "print the log of a job", log, _LOG),
)
