"""`submit`: a task from a file, or from options with the command line of its payload behind `--`.

A submission has a key, so that sending it again makes no second task; where it fails in a way that leaves this open, the key is
told.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from broker_site.client.command import payload, terminal
from broker_site.client.command.grammar import JSON, QUIET, TIMEOUT, Verb, option
from broker_site.client.command.lists import TASKS
from broker_site.client.command.session import Session
from broker_site.client.command.watching import EVERY, until_ended
from broker_site.client.errors import OK, Unreachable, Unusable
from broker_site.client.tasks import new_key

OPTIONS = {
    "name": "taskName", "vo": "vo", "label": "prodSourceLabel", "type": "taskType", "processing": "processingType",
    "priority": "taskPriority", "cores": "coreCount", "files_per_job": "nFilesPerJob", "events": "nEvents",
    "events_per_job": "nEventsPerJob",
}  # fmt: skip
"""Option -> the task parameter that it sets."""
DEFAULTS = {"prodSourceLabel": "user", "taskType": "anal", "processingType": "analysis"}
"""What a task that is made of options is, unless they say otherwise."""


def submit(session: Session) -> int:
    """Send it, print the task; with --wait follow it to its end."""
    options = session.options
    parameters = document(session)
    if options.print:
        session.printer.line(json.dumps(parameters, indent=1))
        return OK
    if options.dry_run:
        return _check(session, parameters)
    key = options.key or new_key()
    again = f"it may have been submitted all the same; once more with --key {shlex.quote(key)} makes no second task"
    session.on_interrupt = again
    try:
        task = session.client.tasks.submit(parameters, key)
    except Unreachable as problem:
        problem.hint = again
        raise
    if told := task.row.get("detail"):
        session.tell(str(told))
    if not options.wait:
        session.printer.rows([task.row], TASKS)
        return OK
    session.tell(f"task {task.id} {terminal.safe(task.name)} is submitted")
    return until_ended(session, [task])


def _check(session: Session, parameters: Mapping[str, Any]) -> int:
    """Tell what a submission would do."""
    told = session.client.tasks.check(parameters)
    parents = [f"  it would wait for task {number}" for number in told["parents"]]
    head = f"{told['task_name']} of {told['user_name']} ({told['vo']}): {told['detail']}; nothing was submitted"
    session.printer.document(told, [head, *parents, *(f"  note: {note}" for note in told["notes"])], key="task_name")
    return OK


def document(session: Session) -> dict[str, Any]:
    """The parameters of the task: those of the file, or of the payload, with what the options say."""
    options = session.options
    file = getattr(options, "file", None)  # `run` takes none
    if (file is None) == (not options.program):
        raise Unusable("What is to be submitted?", "", "broker submit FILE, or broker run --name N --vo VO -- PROGRAM ...")
    given = {name: getattr(options, word) for word, name in OPTIONS.items() if getattr(options, word) is not None}
    if options.memory is not None:
        given.update(ramCount=options.memory, ramUnit="MB")
    if file is not None:
        if options.inputs or options.outputs or options.jobs:
            raise Unusable("--in, --out and --jobs go with a program", "a file says these by itself", "leave them out")
        return {**_read(session, file), **given, **_set(options.set)}
    name = given.get("taskName") or ""
    items = payload.items(name, options.program[1:], options.inputs or (), options.outputs or ())
    made: dict[str, Any] = {**DEFAULTS, "transPath": options.program[0], "jobParameters": items}
    made["log"] = payload.log(name)
    if not options.inputs:
        made.update(noInput=True)
        if options.jobs is not None:
            made.update(nEvents=options.jobs, nEventsPerJob=1)
    elif options.jobs is not None:
        raise Unusable("--jobs goes without --in", "--files-per-job and --events-per-job cut files into jobs")
    return {**made, **given, **_set(options.set)}


def _read(session: Session, name: str) -> Mapping[str, Any]:
    try:
        text = session.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        parameters = json.loads(text)
    except OSError as problem:
        raise Unusable(f"{name} cannot be read", str(problem.strerror or problem)) from None
    except ValueError as problem:
        raise Unusable(f"{name} is not JSON", str(problem)) from None
    if not isinstance(parameters, dict):
        raise Unusable(f"{name} holds no task", "expected is a JSON object of task parameters")
    return parameters


def _set(words: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE: a value that is JSON is that, any other a text."""
    found: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise Unusable("Not a parameter", repr(word), "expected is NAME=VALUE, like maxAttempt=5")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


_HOW = (
    option("--name", metavar="NAME", help="name of the task (taskName)"),
    option("--vo", metavar="VO", help="virtual organisation (vo)"),
    option("--in", dest="inputs", action="append", metavar="DATASET", help="input, in the arguments %%IN, %%IN2, ..."),
    option("--out", dest="outputs", action="append", metavar="FILE", help="what it writes, to the dataset NAME.FILE"),
    option("--jobs", type=int, metavar="N", help="so many jobs of a task without input"),
    option("--files-per-job", type=int, metavar="N", help="input files of a job (nFilesPerJob)"),
    option("--events", type=int, metavar="N", help="events in all (nEvents)"),
    option("--events-per-job", type=int, metavar="N", help="events of a job (nEventsPerJob)"),
    option("--memory", type=int, metavar="MB", help="memory of a job (ramCount)"),
    option("--cores", type=int, metavar="N", help="cores of a job (coreCount)"),
    option("--priority", type=int, metavar="N", help="priority (taskPriority)"),
    option("--label", metavar="LABEL", help="prodSourceLabel, with a program else user"),
    option("--type", metavar="TYPE", help="taskType, with a program else anal"),
    option("--processing", metavar="TYPE", help="processingType, with a program else analysis"),
    option("--set", action="append", default=[], metavar="NAME=VALUE", help="any other task parameter; may be repeated"),
    option("--print", action="store_true", help="print the task parameters instead of sending them"),
    option("--dry-run", action="store_true", help="let the server check it, and submit nothing"),
    option("--key", metavar="KEY", help="Idempotency-Key: sent again with it, it is the same task"),
    option("-w", "--wait", action="store_true", help="follow it to its end; exit code 1 where it is not done"),
    TIMEOUT, EVERY, JSON, QUIET,
)  # fmt: skip
VERBS: Sequence[Verb] = (
    Verb(
        ("submit",),
        "submit a task: a file of task parameters, or a program behind -- with its arguments",
        submit,
        (option("file", nargs="?", metavar="FILE", help="JSON of task parameters, - for standard input"), *_HOW),
        aside=True,
    ),
    Verb(("run",), "submit the program behind -- with its arguments as a task", submit, _HOW, aside=True),
)
