"""Acts on all that match a filter, and `bulk`: how far they are, and their end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from broker_site.client.command import terminal
from broker_site.client.command.grammar import COMMENT, CSV, JSON, QUIET, TIMEOUT, URL, WEB, Verb, option
from broker_site.client.command.lists import limited
from broker_site.client.command.printer import Column, column
from broker_site.client.command.session import Session, filters, numbers
from broker_site.client.errors import INVALID, OK, USAGE, Unusable

Row = Mapping[str, Any]
TOLD = 20
"""Targets that were left, each with its reason."""
ACTS = (
    column("id", right=True), column("act"), column("of"), column("n", right=True), column("done", right=True),
    column("skipped", right=True), column("not_done", "not done", right=True),
    Column("state", lambda row: "stopped" if row["stopped_at"] else "over" if row["ended_at"] else "goes on"),
    column("who"), column("at", "begun (UTC)"),
    Column("filter", lambda row: " ".join(f"{name}={terminal.cell(value)}" for name, value in (row["selection"] or {}).items())),
    column("comment"),
)  # fmt: skip
MANY = option(
    "ids", nargs="+", metavar="ID", help="numbers, or - for those on standard input; or NAME=VALUE filters: all that match"
)
WAIT = option("-w", "--wait", action="store_true", help="with filters: follow the act to its end")


def by_filter(session: Session) -> bool:
    """Whether rows are named by filters. Unusable for numbers and filters together."""
    words = session.options.ids
    named = [word for word in words if "=" in word]
    if named and len(named) < len(words):
        raise Unusable("Numbers or filters", f"not both: {' '.join(words)[:100]}")
    return bool(named)


def begin(session: Session, of: str, act: str, words: Sequence[str] | None = None, priority: int | None = None) -> int:
    """Tell how many match `words`, usually those of the command, ask, begin; with --wait follow it."""
    options, words = session.options, session.options.ids if words is None else words
    chosen = filters(words)
    seen = session.client.bulk.count(of, act, priority, **chosen)
    noun = _noun(seen)
    if seen["n"] > 1 and not session.agreed(f"{act} {seen['n']} {noun} that match {' '.join(words)}?"):
        session.tell("nothing was done")
        return USAGE
    row = session.client.bulk.start(of, act, seen, options.comment, priority, **chosen)
    if options.wait:
        return _followed(session, int(row["id"]))
    told = f"act {row['id']} begun: {act} {row['n']} {noun}; broker bulk watch {row['id']}"
    session.printer.document(row, [told])
    return OK


def list_acts(session: Session) -> int:
    session.printer.rows(limited(session, session.client.bulk.list(limit=None)), ACTS)
    return OK


def show(session: Session) -> int:
    number = _number(session)
    if not session.page(f"/bulk/{number}/"):
        row = session.client.bulk.get(number)
        session.printer.document(row, [*_lines(row), *_left(session, row)])
    return OK


def watch(session: Session) -> int:
    return _followed(session, _number(session))


def stop(session: Session) -> int:
    row = session.client.bulk.stop(_number(session), session.options.comment)
    session.printer.document(row, _lines(row))
    return OK


def _followed(session: Session, number: int) -> int:
    """Exit code 5 where anything was left."""
    session.on_interrupt = f"no longer looking; the act goes on. broker bulk watch {number}, broker bulk stop {number}"
    over = session.stderr.isatty()
    before = ""

    def seen(row: Row) -> None:
        nonlocal before
        (line,) = _lines(row)
        if line != before and over:
            session.stderr.write(f"\r\x1b[K{terminal.cut(terminal.safe(line), max(terminal.columns() - 1, 20))}")
            session.stderr.flush()
        before = line

    try:
        row = session.client.bulk.wait(number, session.options.timeout, seen)
    finally:
        if over and before:
            session.stderr.write("\n")
    session.printer.document(row, [*_lines(row), *_left(session, row)])
    return OK if row["done"] == row["n"] else INVALID


def _lines(row: Row) -> Iterator[str]:
    stopped = f", {row['not_done']} not done: stopped by {row['stopped_by']}" if row["stopped_at"] else ""
    left = row["n"] - row["done"] - row["skipped"] - row["not_done"]
    more = f", {left} to do" if left and not row["ended_at"] else ""
    what = f"{row['act']} {row['n']} {_noun(row)}"
    yield f"act {row['id']}, {what}: {row['done']} done, {row['skipped']} skipped{stopped}{more}"


def _noun(row: Row) -> str:
    return str(row["of"][:-1] if row["n"] == 1 else row["of"])


def _left(session: Session, row: Row) -> Iterator[str]:
    """Those that were skipped, the newest, with their reasons."""
    if row["skipped"]:
        skipped = (each for each in session.client.bulk.targets(row["id"]) if each["outcome"] == "skipped")
        for each, _ in zip(skipped, range(TOLD)):
            yield f"  {each['target_id']} skipped: {each['said']}"
        if row["skipped"] > TOLD:
            yield f"  and {row['skipped'] - TOLD} more"


def _number(session: Session) -> int:
    (number,) = numbers([session.options.id], session.stdin)
    return number


_ACT = option("id", metavar="ACT", help="its number")
VERBS: Sequence[Verb] = (
    Verb(
        ("bulk", "ls"),
        "list acts on many, newest first",
        list_acts,
        (option("-n", "--limit", type=int, metavar="N", help="rows at most, 0 for all (100)"), JSON, CSV, QUIET),
    ),
    Verb(("bulk", "show"), "tell how far an act is, and what was skipped", show, (_ACT, JSON, URL, WEB)),
    Verb(("bulk", "watch"), "follow an act to its end; Ctrl-C stops the looking, not the act", watch, (_ACT, TIMEOUT, JSON)),
    Verb(("bulk", "stop"), "do nothing more of an act; what is done stays done", stop, (_ACT, COMMENT, JSON)),
)
