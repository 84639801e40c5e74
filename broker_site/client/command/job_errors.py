"""`errors`: with which errors jobs ended, each once, the most frequent first; by place, or of one task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from broker_site.client.command import terminal
from broker_site.client.command.grammar import LIST, Verb, option
from broker_site.client.command.lists import limited, query
from broker_site.client.command.printer import Column, column
from broker_site.client.command.session import Session, filters, numbers
from broker_site.client.errors import OK, Unusable

Row = Mapping[str, Any]
ELSEWHERE, NOWHERE = "(others)", "(none)"
"""All places beside those that the server names with an error; jobs that had no place."""
PLACES = {"queue": ("queues", "queue"), "user": ("users", "user_name")}
"""By what each error may be told -> where a row names those, and how."""


def _places(of: str) -> Column:
    """Where most of them were, and how many places more there are."""
    rows, name = PLACES[of]

    def told(row: Row) -> str:
        named = [f"{each[name] or NOWHERE} {each['jobs']}" for each in row[rows]]
        more = row[f"n_{rows}"] - len(named)
        return ", ".join([*named, *([f"{more} more"] if more > 0 else [])])

    return Column(rows, told, yields=True)


def _tasks(row: Row) -> str:
    """How many, with a plus where there may be more; empty where it is not known."""
    n, more = row["n_tasks"], row["more_tasks"]
    return "" if n is None or (more and not n) else f"{n}{'+' if more else ''}"


ERRORS = (
    column("id", right=True), column("jobs", right=True), Column("tasks", _tasks, right=True), column("component", "said by"),
    column("code"), column("exit_code", "exit", right=True), _places("queue"), _places("user"),
    column("last_seen", "last seen (UTC)", time=True), column("job_id", "one job", right=True), column("message"),
)  # fmt: skip
BY_SITE = (column("site"), column("jobs", right=True), column("code"))
OF_TASK = (
    column("code"), column("n_jobs", "jobs", right=True), column("n_not_retried", "not retried", right=True),
    column("job_id", "one job", right=True), column("message"),
)  # fmt: skip


def errors(session: Session) -> int:
    """Those of a window; with `--task` those of all jobs of a task."""
    options = session.options
    chosen = filters(options.filters, like="queue=ALPHA")
    if options.task is not None:
        return _of_task(session, chosen)
    if options.window:
        chosen["window"] = options.window
    if session.page(f"/errors/{query(chosen)}"):
        return OK
    if options.by == "site":
        session.printer.rows(limited(session, session.client.jobs.errors_by_site(**chosen)), BY_SITE, key="site")
        return OK
    found = session.client.jobs.errors(**chosen)
    if options.by:
        columns = (column(options.by), column("jobs", right=True), column("id", right=True), column("code"), column("message"))
        session.printer.rows(limited(session, by_place(found["results"], options.by)), columns)
    else:
        session.printer.rows(limited(session, found["results"]), ERRORS)
    if found["others"]:
        session.tell(f"{terminal.count(found['others'], 'job')} more ended with rarer errors")
    return OK


def by_place(rows: Sequence[Row], by: str) -> Iterator[Row]:
    """A row for each error at each place, the place with most jobs first; jobs at places that no row names stand last."""
    where, name = PLACES[by]
    counted: dict[str, dict[str, int]] = {}
    for row in rows:
        named = [(each[name] or NOWHERE, each["jobs"]) for each in row[where]]
        for place, jobs in (*named, (ELSEWHERE, row["jobs"] - sum(jobs for _, jobs in named))):
            of_place = counted.setdefault(place, {})
            of_place[row["id"]] = of_place.get(row["id"], 0) + jobs
    known = {row["id"]: row for row in rows}
    for place in sorted(counted, key=lambda each: (each == ELSEWHERE, -sum(counted[each].values()), each)):
        for number, jobs in sorted(counted[place].items(), key=lambda each: -each[1]):
            if jobs > 0:
                yield {by: place, **known[number], "jobs": jobs}


def _of_task(session: Session, chosen: Mapping[str, str]) -> int:
    options = session.options
    if chosen or options.by or options.window:
        raise Unusable(
            "--task goes alone", "the errors of all jobs of a task are told together", "broker job ls task=ID status=failed"
        )
    (number,) = numbers([options.task], session.stdin)
    if not session.page(f"/tasks/{number}/"):
        session.printer.rows(limited(session, session.client.tasks.of(number).errors()), OF_TASK, key="code")
    return OK


VERBS: Sequence[Verb] = (
    Verb(
        ("errors",),
        "list the errors with which jobs ended, each once, the most frequent first",
        errors,
        (
            *LIST,
            option(
                "--by",
                choices=("queue", "site", "user"),
                help="each code at each site; or each error for the queues or owners with most of it",
            ),
            option("--task", metavar="ID", help="those of all jobs of this task"),
            option("--window", metavar="SPAN", help="how far back: 1h, 24h or 7d (24h)"),
        ),
    ),
)
