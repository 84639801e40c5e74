"""Tasks: submit, list, read, wait, why, commands."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable
from uuid import uuid4

from broker_site.client.connection import Connection
from broker_site.client.errors import TimedOut
from broker_site.client.jobs import Job
from broker_site.client.progress import Progress, progress_of
from broker_site.client.rows import Row, rows
from broker_site.client.why import Document, Why, why_task

STUCK = "exhausted"
"""The state in which a task does nothing until somebody acts."""
WELL = "done"
"""The end of a task all of whose work was done."""
FIRST_LOOK_S, SLOWEST_LOOK_S = 1.0, 10.0


class Task:
    """One task as the server told it last: `row` holds every field."""

    def __init__(self, connection: Connection, row: Row) -> None:
        self._connection, self.row = connection, row

    @property
    def id(self) -> int:
        return int(self.row["id"])

    @property
    def name(self) -> str:
        return str(self.row["task_name"])

    @property
    def status(self) -> str:
        return str(self.row["status"])

    @property
    def ended(self) -> bool:
        """Whether it goes on no more by itself: it is in a final state, or exhausted."""
        return self.row["ended_at"] is not None or self.status == STUCK

    @property
    def well(self) -> bool:
        """Whether all of its work was done."""
        return self.status == WELL

    def refresh(self) -> Task:
        """Read it again, whole; itself."""
        self.row = self._connection.get(f"tasks/{self.id}/")
        return self

    def progress(self) -> Progress:
        """How far it was when it was last read, whole; it is read if a list gave it."""
        if "datasets" not in self.row:
            self.refresh()
        return progress_of(self.row["datasets"])

    def wait(self, timeout: float | None = None, seen: Callable[[Task], None] | None = None) -> Task:
        """Until it has ended (`ended`); itself. Raises TimedOut after so many seconds; the task goes on then.

        `seen` is called with the task after each look. Looks come each second at first, later each ten.
        """
        end = None if timeout is None else time.monotonic() + timeout
        pause = FIRST_LOOK_S
        while True:
            self.refresh()
            if seen is not None:
                seen(self)
            if self.ended:
                return self
            if end is not None and time.monotonic() + pause > end:
                time.sleep(max(end - time.monotonic(), 0))
                if self.refresh().ended:
                    return self
                raise TimedOut(f"Task {self.id} has not ended", f"it is {self.status} after {timeout:g} s, and goes on")
            time.sleep(pause)
            pause = min(pause * 1.2, SLOWEST_LOOK_S)

    def why(self, queue: str = "") -> Why:
        """Why it is where it is; with a queue also every verdict on that."""
        return why_task(self._connection, self.id, queue)

    def what_if(self, edits: Mapping[str, Any] | None = None) -> Document:
        """What would be decided now, and with these edits; nothing is changed."""
        document: Document = self._connection.post(f"tasks/{self.id}/what-if/", {"edits": dict(edits or {})})
        return document

    def errors(self) -> Sequence[Document]:
        """With what its jobs ended that did not finish, the most frequent first: code, n_jobs, message, job_id, n_not_retried."""
        found: Sequence[Document] = self._connection.get(f"tasks/{self.id}/waiting/")["job_errors"]
        return found

    def jobs(self, limit: int | None = None, **filters: Any) -> Iterator[Job]:
        """Newest first, all tries; filters are those of the list of jobs."""
        return (Job(self._connection, row) for row in rows(self._connection, f"tasks/{self.id}/jobs/", filters, limit))

    def files(self, limit: int | None = None, **filters: Any) -> Iterator[Row]:
        """Its files, as `type="output"`, `status="finished"`."""
        return rows(self._connection, f"tasks/{self.id}/files/", filters, limit)

    def datasets(self) -> Iterator[Row]:
        return rows(self._connection, f"tasks/{self.id}/datasets/", {})

    def history(self) -> Iterator[Row]:
        """Its moves, oldest first: at, old, new, who, why."""
        return rows(self._connection, f"tasks/{self.id}/history/", {})

    def steps(self) -> Sequence[Document]:
        """What the system did with it by itself, newest first: at, rule, why, keys, before, after."""
        found: Sequence[Document] = self._connection.get(f"tasks/{self.id}/steps/")
        return found

    def command(self, verb: str, comment: str = "", **options: Any) -> str:
        """Give a command (kill, pause, resume, finish, retry, ...): the sentence that says what happens. Raises Refused."""
        done = self._connection.post(f"tasks/{self.id}/{verb}/", {"comment": comment, **options})
        self.row = {**self.row, **{name: value for name, value in done.items() if name != "detail"}}
        return str(done["detail"])

    def kill(self, comment: str = "") -> str:
        return self.command("kill", comment)

    def pause(self, comment: str = "") -> str:
        return self.command("pause", comment)

    def resume(self, comment: str = "") -> str:
        return self.command("resume", comment)

    def finish(self, comment: str = "", soft: bool = True) -> str:
        """End with what is done; not soft: running jobs are stopped too."""
        return self.command("finish", comment, soft=soft)

    def retry(self, comment: str = "", **options: Any) -> str:
        return self.command("retry", comment, **options)

    def change(self, name: str, comment: str = "", **values: Any) -> Document:
        """Change it while it lives: `change("priority", priority=800)`, `change("split-rule", rule="nMaxFilesPerJob", value=20)`.

        The answer has `detail`, which says what happens, `before`, `after` and the task. Raises Refused.
        """
        done: Document = self._connection.post(f"tasks/{self.id}/{name}/", {"comment": comment, **values})
        self.row = {**self.row, **done["task"]}
        return done

    def __repr__(self) -> str:
        return f"<Task {self.id} {self.name!r} {self.status}>"


class Tasks:
    """`client.tasks`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def submit(self, parameters: Any, key: str = "") -> Task:
        """Submit a task by its parameters, a mapping or JSON as bytes.

        `key` names the submission: with the same one and the same parameters there is one task, however often it is sent. Without
        one each call is a submission of its own, whose tries have a key in common. Raises Refused with each fault and its field.
        """
        return Task(self._connection, self._connection.post("tasks/", parameters, key or new_key()))

    def check(self, parameters: Any) -> Document:
        """What a submission would do, and `notes` on it; nothing is kept. Raises Refused as `submit` does."""
        document: Document = self._connection.post("tasks/check/", parameters)
        return document

    def list(self, limit: int | None = 100, **filters: Any) -> Iterator[Task]:
        """Newest first; filters are those of `/api/v1/tasks/`, as `status="running,pending"`, `task_name="demo.*"`. None: all."""
        return (Task(self._connection, row) for row in rows(self._connection, "tasks/", filters, limit))

    def get(self, task_id: int) -> Task:
        """The task, whole."""
        return Task(self._connection, self._connection.get(f"tasks/{int(task_id)}/"))

    def of(self, task_id: int) -> Task:
        """The task of this number for commands, without asking for it."""
        return Task(self._connection, {"id": int(task_id), "task_name": "", "status": "", "ended_at": None})


def new_key() -> str:
    return uuid4().hex
