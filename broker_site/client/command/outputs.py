"""`get`: outputs as files; `logs` and `job log`: what a job wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from broker_site.client.command import terminal
from broker_site.client.command.grammar import ONE, Verb, option
from broker_site.client.command.session import Session, numbers
from broker_site.client.errors import OK, BrokerError, Refused, Unusable


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
    """Each file of the log under its name. What is no text of a terminal is written out, unless --raw."""
    (number,) = numbers([session.options.id], session.stdin)
    if session.page(f"/jobs/{number}/log/"):
        return OK
    streams = session.client.outputs.log(number)
    if streams is None:
        where = session.client.connection.address(f"/jobs/{number}/log/")
        raise Refused(404, {"title": "No log on storage", "detail": f"of job {number}"}, f"what came with its report: {where}")
    for stream in streams:
        if len(streams) > 1:
            session.printer.line(terminal.safe(f"==> {stream.name} <=="))
        for line in stream.text.splitlines():
            session.printer.line(line if session.options.raw else terminal.safe(line, keep="\t"))
    return OK


_LOG = (
    ONE,
    option("--raw", action="store_true", help="as it is, control characters too"),
    option("--url", action="store_true", help="print the address of the page instead"),
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
