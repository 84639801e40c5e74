"""`kill`, `pause`, `resume`, `finish`, `retry` of tasks; `kill` and `retry` of jobs: by number, or all that match filters.

`task set`: what may be changed of tasks that live on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from broker_site.client.command.bulk import MANY, WAIT, begin, by_filter
from broker_site.client.command.grammar import COMMENT, IDS, JSON, TIMEOUT, YES, Verb, option
from broker_site.client.command.session import Session, filters, numbers
from broker_site.client.errors import OK, USAGE, Refused, Unusable
from broker_site.client.jobs import Job

NEEDS = ("ramCount", "walltime", "cpuTime", "coreCount")
"""What new jobs of a task ask for."""
SETTABLE = f"there are: priority, share, {', '.join(NEEDS)}, and split rules such as nMaxFilesPerJob"


def _task_verb(verb: str, asks: bool, **fixed: Any) -> Any:
    """The function of a command on tasks; `asks`: of several it is asked first."""

    def run(session: Session) -> int:
        options = session.options
        if hasattr(options, "wait") and by_filter(session):
            return begin(session, "tasks", verb)
        ids = numbers(options.ids, session.stdin)
        if asks and not session.sure(verb, ids, "task"):
            session.tell("nothing was done")
            return USAGE
        more = {**fixed, **({"soft": False} if getattr(options, "hard", False) else {})}

        def give(number: int) -> None:
            done = session.client.connection.post(f"tasks/{number}/{verb}/", {"comment": options.comment, **more})
            session.printer.document(done, [f"task {number} {done['status']}: {done['detail']}"])

        return session.each(ids, give)

    return run


def set_tasks(session: Session) -> int:
    """Each change by itself: what is refused keeps the rest of that task, not the other tasks, from it."""
    options = session.options
    wanted = filters([word for word in options.ids if "=" in word], like="priority=800")
    if options.where:
        return _set_all(session, wanted)
    changes = list(_changes(wanted))
    ids = numbers([word for word in options.ids if "=" not in word], session.stdin)
    if not changes or not ids:
        raise Unusable("What is to be set of which task?", "", f"broker task set ID NAME=VALUE; {SETTABLE}")
    if not session.sure("change", ids, "task"):
        session.tell("nothing was done")
        return USAGE

    def give(number: int) -> None:
        for name, values in changes:
            try:
                done = session.client.tasks.of(number).change(name, options.comment, **values)
            except Refused as refused:
                refused.hint = refused.hint or (_hint(values) if refused.status == 422 else "")
                raise
            session.printer.document(done, [done["detail"]])

    return session.each(ids, give)


def _set_all(session: Session, wanted: Mapping[str, str]) -> int:
    """Of all that match, in the background; the server does so with the priority alone."""
    options = session.options
    if [word for word in options.ids if "=" not in word]:
        raise Unusable("Numbers or --where", f"not both: {' '.join(options.ids)[:100]}")
    priority = _value(wanted.get("priority", ""))
    if set(wanted) != {"priority"} or not isinstance(priority, int) or isinstance(priority, bool):
        hint = f"one by one: broker ls -q -n 0 {' '.join(options.where)} | broker task set - NAME=VALUE"
        raise Unusable("--where goes with priority=NUMBER alone", " ".join(options.ids)[:100], hint)
    return begin(session, "tasks", "priority", options.where, priority)


def _changes(wanted: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The changes that the server knows, each with its values; any other name is for the split rule."""
    for name in ("priority", "share"):
        if name in wanted:
            yield name, {name: wanted[name] if name == "share" else _value(wanted[name])}
    if needs := {name: _value(wanted[name]) for name in NEEDS if name in wanted}:
        yield "attributes", needs
    for name, text in wanted.items():
        if name not in ("priority", "share", *NEEDS):
            yield "split-rule", {"rule": name, "value": _value(text) if text else None}


def _hint(values: Mapping[str, Any]) -> str:
    """What may be set; first what is most like the rule that was said, where it is none of the rules."""
    near = get_close_matches(str(values.get("rule", ""))[:100], ("priority", "share", *NEEDS), 1, 0.8)
    return f"perhaps {near[0]}; {SETTABLE}" if near else SETTABLE


def _value(text: str) -> Any:
    """What is JSON is that, any other a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def kill_jobs(session: Session) -> int:
    options = session.options
    if by_filter(session):
        return begin(session, "jobs", "kill")
    ids = numbers(options.ids, session.stdin)
    if not session.sure("kill", ids, "job"):
        session.tell("nothing was done")
        return USAGE
    return session.each(ids, lambda number: _told(session, _job(session, number).kill(options.comment)))


def retry_jobs(session: Session) -> int:
    options = session.options
    if by_filter(session):
        return begin(session, "jobs", "retry")
    ids = numbers(options.ids, session.stdin)
    return session.each(ids, lambda number: _told(session, _job(session, number).retry(options.comment)))


def _job(session: Session, number: int) -> Job:
    return Job(session.client.connection, {"id": number, "status": ""})


def _told(session: Session, done: Any) -> int:
    session.printer.document(done, [str(done.get("detail") or f"job {done.get('id')} {done.get('status')}")])
    return OK


_SET = option(
    "ids",
    nargs="+",
    metavar="ID ... NAME=VALUE",
    help="numbers, or - for those on standard input, and what to set: priority, share, ramCount, walltime, cpuTime, coreCount, "
    "or a split rule such as nMaxFilesPerJob, which nothing behind = takes away",
)
_WHERE = option(
    "--where",
    action="append",
    default=[],
    metavar="NAME=VALUE",
    help="a filter instead of numbers: all that match; for priority",
)
_COMMAND = (MANY, COMMENT, YES, WAIT, TIMEOUT, JSON)
_HARD = option("--hard", action="store_true", help="stop running jobs too")
VERBS: Sequence[Verb] = (
    Verb(("task", "kill"), "end tasks with all their jobs", _task_verb("kill", asks=True), _COMMAND, short=True),
    Verb(("task", "retry"), "give inputs that were given up more tries", _task_verb("retry", asks=False), _COMMAND, short=True),
    Verb(("task", "pause"), "hand out no more jobs of tasks", _task_verb("pause", asks=True), _COMMAND, short=True),
    Verb(("task", "resume"), "let tasks go on that are paused or throttled", _task_verb("resume", False), _COMMAND, short=True),
    Verb(
        ("task", "finish"),
        "make no more jobs and end tasks with what is done",
        _task_verb("finish", asks=True),
        (IDS, COMMENT, YES, JSON, _HARD),
        short=True,
    ),
    Verb(("task", "set"), "change tasks that live on", set_tasks, (_SET, _WHERE, COMMENT, YES, WAIT, TIMEOUT, JSON)),
    Verb(("job", "kill"), "cancel jobs", kill_jobs, _COMMAND),
    Verb(("job", "retry"), "give inputs that were given up with jobs five tries more", retry_jobs, _COMMAND),
)
