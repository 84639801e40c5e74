"""`watch`, and the waiting of `submit --wait`: looks at tasks until they have ended, with a line that says how far they are.

Ctrl-C ends the looking, never the task.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from broker_site.client.command import terminal
from broker_site.client.command.grammar import IDS, JSON, QUIET, TIMEOUT, URL, WEB, Verb, option
from broker_site.client.command.lists import TASKS
from broker_site.client.command.session import Session, numbers
from broker_site.client.errors import OK, TASK_FAILED, TimedOut
from broker_site.client.progress import Pace, Progress
from broker_site.client.tasks import Task

EVERY_S, LEAST_EVERY_S = 2.0, 0.2
SILENCE_S = 60.0
"""How long a server may be away while it is watched."""


def watch(session: Session) -> int:
    ids = numbers(session.options.ids, session.stdin)
    if session.options.url or session.options.web:
        for number in ids:
            session.page(f"/tasks/{number}/")
        return OK
    return until_ended(session, [session.client.tasks.get(number) for number in ids])


def until_ended(session: Session, tasks: Sequence[Task]) -> int:
    """Print each task once all have ended; exit code 1 where one is not done. Raises TimedOut."""
    names = " ".join(str(task.id) for task in tasks)
    session.on_interrupt = f"no longer looking; nothing was stopped. Go on with: broker watch {names}"
    session.client.connection.silence_s = SILENCE_S
    timeout = session.options.timeout
    end = None if timeout is None else session.now() + timeout
    line = _Line(session)
    try:
        line.show(tasks)
        while open_tasks := [task for task in tasks if not task.ended]:
            left = None if end is None else end - session.now()
            if left is not None and left <= 0:
                states = ", ".join(f"{task.id} is {task.status}" for task in open_tasks)
                raise TimedOut(f"Not ended after {timeout:g} s", states, f"they go on; broker watch {names}")
            every = max(session.options.every, LEAST_EVERY_S)
            time.sleep(every if left is None else min(every, left))
            for task in open_tasks:
                task.refresh()
            line.show(tasks)
    finally:
        line.end()
    session.printer.rows((task.row for task in tasks), TASKS)
    return OK if all(task.well for task in tasks) else TASK_FAILED


class _Line:
    """On a terminal one line that is written over; else one line for each change of a state."""

    def __init__(self, session: Session) -> None:
        self._session, self._pace = session, Pace()
        self._over = session.stderr.isatty()
        self._states: dict[int, str] = {}
        self._open = False

    def show(self, tasks: Sequence[Task]) -> None:
        parts = [task.progress() for task in tasks]
        whole = Progress(*(sum(getattr(part, name) for part in parts) for name in ("done", "failed", "in_jobs", "total")))
        self._pace.note(self._session.now(), whole)
        if self._over:
            room = max(terminal.columns() - 1, 20)
            self._session.stderr.write(f"\r\x1b[K{terminal.cut(progress_line(tasks, whole, self._pace), room)}")
            self._session.stderr.flush()
            self._open = True
            return
        for task, part in zip(tasks, parts):
            if self._states.get(task.id) != task.status:
                self._states[task.id] = task.status
                self._session.tell(f"task {task.id} {task.status}: {_counts(part)}")

    def end(self) -> None:
        if self._open:
            self._session.stderr.write("\n")
            self._session.stderr.flush()


def progress_line(tasks: Sequence[Task], progress: Progress, pace: Pace) -> str:
    """States, files done and given up and in jobs, rate, time left; only what is known."""
    states = Counter(task.status for task in tasks)
    who = f"task {tasks[0].id} {tasks[0].status}" if len(tasks) == 1 else ", ".join(f"{n} {s}" for s, n in states.items())
    rate, left = pace.per_minute, pace.seconds_left
    parts = [who, f"{progress.percent} %", _counts(progress)]
    parts += [f"{rate:.1f}/min"] if rate else []
    parts += [f"about {terminal.span(left)} left"] if left is not None and any(not task.ended for task in tasks) else []
    return terminal.safe("  ".join(parts))


def _counts(progress: Progress) -> str:
    of = f"{progress.in_jobs} in jobs, {progress.left} left of {progress.total} files"
    return f"{progress.done} done, {progress.failed} failed, {of}"


EVERY = option("--every", type=float, default=EVERY_S, metavar="S", help="seconds between two looks (%(default)s)")
VERBS: Sequence[Verb] = (
    Verb(
        ("task", "watch"),
        "follow tasks until they have ended; Ctrl-C stops the looking, not the tasks",
        watch,
        (IDS, TIMEOUT, EVERY, JSON, QUIET, URL, WEB),
        short=True,
    ),
)
