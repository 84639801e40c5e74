"""`ls` and `show` of tasks, jobs, queues, shares and datasets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from itertools import takewhile
from typing import Any
from urllib.parse import urlencode

from broker_site.client.command import terminal
from broker_site.client.command.grammar import CSV, JSON, LIST, NAME, ONE, QUIET, SHOW, URL, WEB, Verb, option
from broker_site.client.command.printer import Column, column
from broker_site.client.command.session import Session, filters, numbers
from broker_site.client.connection import segment
from broker_site.client.errors import OK, Refused, Unusable
from broker_site.client.progress import progress_of

Row = Mapping[str, Any]
MOST = 100
"""Rows of a list of which nobody said how many."""
TASKS = (
    column("id", right=True), column("status"), column("progress", "%", right=True), column("task_name", "name"),
    column("user_name", "user"), column("creation_date", "created (UTC)"), column("error_dialog", "reason"),
)  # fmt: skip
JOBS = (
    column("id", right=True), column("task_id", "task", right=True), column("status"), column("computing_queue", "queue"),
    column("attempt_nr", "try", right=True), column("created_at", "created (UTC)"), column("ended_at", "ended (UTC)"),
    column("job_name", "name"),
)  # fmt: skip
QUEUES = (
    column("name"), column("status"), column("site"), Column("running", lambda row: row["jobs"].get("running", 0), True),
    Column("other", lambda row: sum(n for state, n in row["jobs"].items() if state != "running"), True),
    column("open_jobs", "open", right=True), Column("idle", lambda row: row["idle"]["idle"], True), column("type"),
)  # fmt: skip
DATASETS = (
    column("id", right=True), column("task_id", "task", right=True), column("type"), column("status"),
    column("n_files", "files", right=True), column("n_files_finished", "finished", right=True),
    column("n_files_failed", "failed", right=True), column("dataset_name", "name"),
)  # fmt: skip
_FILES = (
    ("n_files_used", "used"), ("n_files_finished", "finished"), ("n_files_failed", "failed"), ("n_files_on_hold", "on hold"),
    ("n_files_missing", "missing"), ("n_files_waiting", "waiting"),
)  # fmt: skip
"""Counters of a dataset, and their words; those of none are left out."""
_SPAN = re.compile(r"(\d{1,6})([smhdw])")
_LONGEST_SPAN = timedelta(days=100_000)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def list_tasks(session: Session) -> int:
    """Newest first; with `--since` until the first that is older, since ids grow with time."""
    options = session.options
    chosen = filters(options.filters)
    chosen.update({name: value for name, value in (("status", options.status), ("user_name", options.user)) if value})
    if options.mine:
        if "user_name" in chosen:
            raise Unusable("Whose tasks?", "--mine names an owner, and so does --user or user_name=", "leave one of them out")
        chosen["user_name"] = str(session.client.connection.get("me/")["name"])
    if session.page(f"/tasks/{query(chosen)}"):
        return OK
    found: Iterable[Row] = (task.row for task in session.client.tasks.list(limit=None, **chosen))
    if options.since:
        oldest = datetime.now(timezone.utc) - time_span(options.since)
        found = takewhile(lambda row: _at(row["creation_date"]) >= oldest, found)
    session.printer.rows(limited(session, found), TASKS)
    return OK


def list_jobs(session: Session) -> int:
    chosen = filters(session.options.filters)
    if session.page(f"/jobs/{query(chosen)}"):
        return OK
    session.printer.rows(limited(session, (job.row for job in session.client.jobs.list(limit=None, **chosen))), JOBS)
    return OK


def list_queues(session: Session) -> int:
    chosen = filters(session.options.filters)
    if not session.page("/queues/"):
        session.printer.rows(limited(session, session.client.queues.list(limit=None, **chosen)), QUEUES, key="name")
    return OK


def show_dataset(session: Session) -> int:
    """By its number, or by a name that one alone has."""
    number = _dataset_number(session, session.options.id)
    if not session.page(f"/datasets/{number}/"):
        row = session.client.datasets.get(number)
        session.printer.document(row, _dataset_lines(row))
    return OK


def _dataset_number(session: Session, said: str) -> int:
    """Refused with 404 where none has the name, Unusable where several have."""
    if said == "-" or said.isdigit():
        return numbers([said], session.stdin)[0]
    found = list(session.client.datasets.list(limit=6, dataset_name=said))
    if not found:
        raise Refused(404, {"title": "Not found", "detail": f"there is no dataset {said!r}"}, "broker dataset ls")
    if len(found) > 1:
        told = ", ".join(f"{row['id']} of task {row['task_id']}" for row in found[:5])
        raise Unusable("Several datasets", f"{told}{', ...' if len(found) > 5 else ''}", "say the number of one")
    return int(found[0]["id"])


def _dataset_lines(row: Row) -> Iterator[str]:
    yield f"Dataset {row['id']} {row['dataset_name']} ({row['vo']}): {row['type']} of task {row['task_id']}"
    yield f"  {row['status']} since {terminal.moment(row['status_since'])} UTC{', no longer used' if row['excluded'] else ''}"
    counts = [f"{n} {word}" for name, word in _FILES if (n := row[name])]
    yield f"  {terminal.count(row['n_files'], 'file')}{': ' if counts else ''}{', '.join(counts)}"
    if row["n_events"]:
        yield f"  {terminal.count(row['n_events'], 'event')}, {row['n_events_used']} done"
    for name, word in (
        ("container_name", "container"), ("data_vo", "data of"), ("destination", "goes to"), ("site", "written at"),
        ("collected_at", "collected at"), ("also_at", "also wanted at"), ("attributes", "attributes"),
    ):  # fmt: skip
        if told := terminal.cell(row[name]):
            yield f"  {word} {told}"
    if row["state"]:
        read = f", read {terminal.moment(row['state_check_time'])} UTC" if row["state_check_time"] else ""
        yield f"  in the catalogue {row['state']}{read}"
    yield f"  known since {terminal.moment(row['creation_time'])} UTC"


def list_datasets(session: Session) -> int:
    chosen = filters(session.options.filters)
    if not session.page(f"/datasets/{query(chosen)}"):
        session.printer.rows(limited(session, session.client.datasets.list(limit=None, **chosen)), DATASETS)
    return OK


def show_task(session: Session) -> int:
    (number,) = numbers([session.options.id], session.stdin)
    if not session.page(f"/tasks/{number}/"):
        row = session.client.tasks.get(number).row
        session.printer.document(row, task_lines(row))
    return OK


def task_lines(row: Row) -> Iterator[str]:
    progress = progress_of(row["datasets"])
    yield f"Task {row['id']} {row['task_name']} of {row['user_name']} ({row['vo']})"
    yield f"  {row['status']} since {terminal.moment(row['status_since'])} UTC"
    if row["error_dialog"]:
        yield f"  {row['error_dialog']}"
    yield (
        f"  {progress.percent} %: {progress.done} of {progress.total} done, {progress.failed} given up, "
        f"{progress.in_jobs} in jobs, {progress.left} left"
    )
    yield f"  priority {row['current_priority']}, share {row['gshare'] or 'none'}, {row['prod_source_label']}"
    yield f"  submitted {terminal.moment(row['creation_date'])} UTC"
    for dataset in row["datasets"]:
        yield f"  {dataset['type']} {dataset['dataset_name']}: {dataset['n_files_finished']} of {dataset['n_files']} files"
    yield from (f"  note: {note}" for note in row["notes"])


def show_job(session: Session) -> int:
    (number,) = numbers([session.options.id], session.stdin)
    if not session.page(f"/jobs/{number}/"):
        row = session.client.jobs.get(number).row
        session.printer.document(row, _job_lines(row))
    return OK


def _job_lines(row: Row) -> Iterator[str]:
    yield f"Job {row['id']} {row['job_name']} of task {row['task_id']}, try {row['attempt_nr']}"
    where = row["computing_queue"] or f"open to {', '.join(row['open_to']) or 'no queue'}"
    yield f"  {row['status']} since {terminal.moment(row['status_since'])} UTC, {where}"
    yield f"  {row['spec']['transformation']} {row['spec']['job_parameters']}"
    memory = f"{row['spec']['ram_mb']} MB" if row["spec"]["ram_mb"] else "no demand of memory"
    longest = f"at most {terminal.span(row['spec']['walltime_s'])}" if row["spec"]["walltime_s"] else "no limit of time"
    yield f"  {terminal.count(row['core_count'], 'core')}, {memory}, {longest}"
    if result := row["result"]:
        error = f", {result['error_code']}: {result['error_message']}" if result["error_code"] else ""
        yield f"  ended on {result['host'] or 'no host'} with exit code {result['exit_code']}{error}"
    for file in (*row["inputs"], *row["outputs"]):
        yield f"  {file['type']} {file['lfn']}"
    for move in row["history"]:
        yield f"  {terminal.moment(move['at'])} {move['old']} -> {move['new']} {move['who']}: {move['why']}"


def show_queue(session: Session) -> int:
    name = session.options.name
    if not session.page(f"/queues/{segment(name)}/"):
        row = session.client.queues.get(name)
        session.printer.document(row, _queue_lines(row), key="name")
    return OK


def _queue_lines(row: Row) -> Iterator[str]:
    yield f"Queue {row['name']} at {row['site']}: {row['status']}, {row['type']}"
    jobs = ", ".join(f"{n} {state}" for state, n in row["jobs"].items() if n) or "none"
    yield f"  jobs: {jobs}; {row['open_jobs']} open to it and others"
    yield f"  idle slots: {row['idle']['idle']}, {row['idle']['beside']} beside work. {row['idle']['why']}".rstrip(". ")
    for name in ("maxrss", "maxtime", "maxwdir", "corecount", "corepower"):
        yield f"  {name} {terminal.cell(row.get(name))}"
    for override in row["overrides"]:
        yield f"  {override['attribute']} is {override['value']} by hand: {override['reason']} ({override['who']})"
    if row["fault"]:
        yield f"  fault: {row['fault']}"


SHARE = (
    Column("name", lambda row: "  " * row["level"] + row["name"]), column("vo"),
    column("kind"), column("value", right=True), column("percent", "%", right=True), column("target", "target HS06", right=True),
    column("used", "used HS06", right=True), column("deviation", "off %", right=True),
    column("jobs_running", "running", right=True), column("jobs_queued", "queued", right=True),
    Column("turn", lambda row: row["place"], right=True),
)  # fmt: skip


_HS06 = (("target", "target"), ("entitled", "entitled to"), ("used", "used"), ("queued", "queued"))


def show_tree(session: Session) -> int:
    if not session.page("/shares/"):
        session.printer.rows(session.client.shares.list(), SHARE, key="name")
    return OK


def show_share(session: Session) -> int:
    """Every share of the name; Refused with 404 where there is none."""
    if session.page("/shares/"):
        return OK
    named = [row for row in session.client.shares.list() if row["name"] == session.options.name]
    if not named:
        raise Refused(404, {"title": "Not found", "detail": f"there is no share {session.options.name!r}"}, "broker share tree")
    for row in named:
        session.printer.document(row, _share_lines(row), key="name")
    return OK


def _share_lines(row: Row) -> Iterator[str]:
    """Numbers of HS06 are whole: they are sums over many cores."""
    kind, below = ("Share" if row["kind"] == "share" else "Work queue"), f", below {row['parent']}" if row["parent"] else ""
    yield f"{kind} {row['name']} of {row['vo']}{below}{'' if row['drives'] else '; counted only, work is not served by it'}"
    of_all = f", {row['percent']:.1f} % of all" if row["percent"] is not None else ""
    yield f"  value {terminal.cell(row['value']) or 'none'}{of_all}"
    if row["counted_at"] is None:
        yield "  not counted yet"
        return
    named = [(word, row[name]) for name, word in _HS06]
    yield f"  {', '.join(f'{word} {value:.0f} HS06' for word, value in named if value is not None)}"
    if row["deviation"] is not None:
        yield f"  {row['deviation']:+.0f} % off the target{', more runs than it is entitled to' if row['above'] else ''}"
    for word, jobs, cores in (("run", "jobs_running", "cores_running"), ("wait", "jobs_queued", "cores_queued")):
        verb = f"{word}s" if row[jobs] == 1 else word
        yield f"  {terminal.count(row[jobs] or 0, 'job')} {verb} with {terminal.count(row[cores] or 0, 'core')}"
    if row["ahead"]:
        yield f"  of late {abs(row['ahead']):.0f} HS06 too {'much' if row['ahead'] > 0 else 'little'} ran"
    if row["place"] is not None:
        yield f"  turn {terminal.cell(row['place'])}: 0 is served first, 1 last"
    yield f"  counted at {terminal.moment(row['counted_at'])} UTC"


def limited(session: Session, rows: Iterable[Row]) -> Iterator[Row]:
    """As many as were asked for; where nobody said how many, that there are more is told."""
    given = session.options.limit
    limit = MOST if given is None else given
    if limit < 0:
        raise Unusable("Not a number of rows", str(limit), "expected is 0 for all, or more")
    number = 0
    for number, row in enumerate(rows, 1):
        if limit and number > limit:
            if given is None:
                session.tell(f"there are more than {limit}; -n 0 shows all")
            return
        yield row
    if not number and session.printer.form == "table":
        session.tell("there is none")


def query(chosen: Mapping[str, str]) -> str:
    """Filters as an address has them."""
    return f"?{urlencode(chosen)}" if chosen else ""


def time_span(text: str) -> timedelta:
    """`2d`, `90m`. Raises Unusable."""
    found = _SPAN.fullmatch(text)
    if found is None:
        raise Unusable("Not a time span", repr(text), "expected is a number with s, m, h, d or w, like 2d")
    span = timedelta(seconds=int(found[1]) * _SECONDS[found[2]])
    if span > _LONGEST_SPAN:  # no calendar has what is so far away
        raise Unusable("Not a time span", repr(text), f"expected is one of {_LONGEST_SPAN.days} days at most")
    return span


def _at(text: str | None) -> datetime:
    return datetime.fromisoformat(str(text).replace("Z", "+00:00"))


NUMBER_OR_NAME = option("id", metavar="ID", help="its number, or its name")
_TASK_LIST = (
    *LIST,
    option("-s", "--status", metavar="STATES", help="states with commas between"),
    option("-u", "--user", metavar="NAME", help="owner; * and ? are wildcards"),
    option("--mine", action="store_true", help="yours alone"),
    option("--since", metavar="SPAN", help="submitted no longer ago than this, like 2d or 90m"),
)
VERBS: Sequence[Verb] = (
    Verb(("task", "ls"), "list tasks, newest first", list_tasks, _TASK_LIST, short=True),
    Verb(("task", "show"), "tell of one task", show_task, (ONE, *SHOW), short=True),
    Verb(("job", "ls"), "list jobs, newest first", list_jobs, LIST),
    Verb(("job", "show"), "tell of one job", show_job, (ONE, *SHOW)),
    Verb(("queue", "ls"), "list computing queues with their jobs", list_queues, LIST),
    Verb(("queue", "show"), "tell of one computing queue", show_queue, (NAME, *SHOW)),
    Verb(("share", "tree"), "list shares and work queues, each below its parent", show_tree, (JSON, CSV, QUIET, URL, WEB)),
    Verb(("share", "show"), "tell of one share or work queue", show_share, (NAME, *SHOW)),
    Verb(("dataset", "ls"), "list datasets of tasks, newest first", list_datasets, LIST),
    Verb(("dataset", "show"), "tell of one dataset of a task", show_dataset, (NUMBER_OR_NAME, *SHOW)),
)
