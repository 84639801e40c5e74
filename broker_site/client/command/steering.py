"""`kill`, `pause`, `resume`, `finish`, `retry` of tasks; `kill` and `retry` of jobs: by number, or all that match filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broker_site.client.command.bulk import MANY, WAIT, begin, by_filter
from broker_site.client.command.grammar import COMMENT, IDS, JSON, TIMEOUT, YES, Verb, option
from broker_site.client.command.session import Session, numbers
from broker_site.client.errors import OK, USAGE
from broker_site.client.jobs import Job


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
    Verb(("job", "kill"), "cancel jobs", kill_jobs, _COMMAND),
    Verb(("job", "retry"), "give inputs that were given up with jobs five tries more", retry_jobs, _COMMAND),
)
