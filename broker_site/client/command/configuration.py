"""`cfg`: keys and where their values come from; drafts, tried and applied; history and the way back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from broker_site.client.command import terminal
from broker_site.client.command.drafting import (
    APPLY,
    BASE,
    DRY,
    FILE,
    OF_VO,
    ONLY,
    REASON,
    applied,
    change_lines,
    proceed,
    reasoned,
    take_file,
    told,
)  # fmt: skip
from broker_site.client.command.grammar import CSV, JSON, LIST, QUIET, URL, WEB, YES, Verb, option
from broker_site.client.command.lists import limited, query, time_span
from broker_site.client.command.printer import Column, column
from broker_site.client.command.session import Session, filters, numbers
from broker_site.client.configuration import Held
from broker_site.client.connection import segment
from broker_site.client.drafts import LISTS, text_of
from broker_site.client.errors import OK, USAGE, Unusable

Row = Mapping[str, Any]
KEYS = (
    column("key"), column("effective", "value"), column("default_value", "default"),
    Column("overrides", lambda row: ", ".join(f"{each['vo'] or 'all'}: {each['value']}" for each in row["overrides"])),
)  # fmt: skip
CHANGES = (
    column("revision", right=True), column("at", "when (UTC)"), column("who"), column("source", "way"),
    Column("changes", lambda row: "; ".join(f"{line['key']}: {line['words']}" for line in row["lines"]), yields=True),
    column("why"),
)  # fmt: skip


def list_keys(session: Session) -> int:
    chosen = filters(session.options.filters)
    if not session.page(f"/config/{query(chosen)}"):
        session.printer.rows(session.client.config.list(**chosen), KEYS, key="key")
    return OK


def get(session: Session) -> int:
    """The value and where it comes from; with --quiet the value alone."""
    options = session.options
    if session.page(f"/config/{segment(options.key)}/"):
        return OK
    held = session.client.config.get(options.key, options.vo)
    document = {**held.row, "key": held.key, "vo": options.vo, "value": held.value, "source": held.source}
    session.printer.document(document, _lines(held), key="value")
    return OK


def _lines(held: Held) -> Iterator[str]:
    row = held.row
    kind = ", ".join(filter(None, [row["type"], row["unit"], row["bounds"]]))
    yield f"{held.key} = {held.value}"
    yield f"  {held.source}; default {row['default_value']}{f' ({kind})' if kind else ''}"
    if row["doc"]:
        yield f"  {row['doc']}"
    for each in row["overrides"]:
        until = f", until {terminal.moment(each['until'])} UTC" if each["until"] else ""
        fault = f"; not used: {each['fault']}" if each["fault"] else ""
        yield (
            f"  {each['name']} for {each['vo'] or 'all VOs'}: {each['value']}{until}, revision {each['revision']} of "
            f"{terminal.moment(each['at'])} UTC by {each['who']}: {each['why']}{fault}"
        )


def set_keys(session: Session) -> int:
    options = session.options
    until = None
    if options.span:
        until = (datetime.now(timezone.utc) + time_span(options.span)).isoformat(timespec="seconds")
    wanted = filters(options.keys, like="jobbroker.NQUEUELIMITSITE=30")
    return _keys(session, [{"key": key, "vo": options.vo, "value": value, "until": until} for key, value in wanted.items()])


def unset_keys(session: Session) -> int:
    return _keys(session, [{"key": key, "vo": session.options.vo, "value": None} for key in session.options.keys])


def _keys(session: Session, entries: Sequence[Mapping[str, Any]]) -> int:
    return proceed(session, [{"kind": "config", **entry} for entry in entries], None)


def export(session: Session) -> int:
    if session.options.yaml:
        session.printer.line(session.client.config.export_yaml(session.options.vo).rstrip("\n"))
        return OK
    revision, document = session.client.config.export(session.options.vo)
    session.printer.line(text_of(document).rstrip("\n"))
    session.tell(f"this is revision {revision}")
    return OK


def diff(session: Session) -> int:
    return take_file(session, LISTS, dry=True)


def apply(session: Session) -> int:
    return take_file(session, LISTS)


def history(session: Session) -> int:
    chosen = filters(session.options.filters)
    if not session.page(f"/changes/{query(chosen)}"):
        found = session.client.config.changes(limit=None, **chosen)
        session.printer.rows(limited(session, found), CHANGES, key="revision")
    return OK


def show(session: Session) -> int:
    revision = _revision(session)
    if not session.page(f"/changes/{revision}/"):
        made = session.client.config.change(revision)
        back = f", takes back {made['reverts']}" if made["reverts"] else ""
        head = (
            f"Revision {revision} of {terminal.moment(made['at'])} UTC by {made['who']} ({made['source']}){back}: {made['why']}"
        )
        session.printer.document(made, [head, *(f"  {line}" for line in change_lines(made["lines"]))], key="revision")
    return OK


def revert(session: Session) -> int:
    """Tried first, then taken back once somebody agrees."""
    options, revision = session.options, _revision(session)
    if not options.dry_run:
        reasoned(session)
    told(session, session.client.config.revert(revision, options.reason or "dry run", dry_run=True))
    if options.dry_run:
        return OK
    if not session.agreed(f"take revision {revision} back?"):
        session.tell("nothing was changed")
        return USAGE
    return applied(session, session.client.config.revert(revision, options.reason))


def _revision(session: Session) -> int:
    (revision,) = numbers([session.options.revision], session.stdin)
    if not revision:
        raise Unusable("Not a revision", "0", "broker cfg history lists them")
    return revision


_KEY_VO = option("--vo", default="", metavar="VO", help="for this VO; without it for all that have none of their own")
_REVISION = option("revision", metavar="REVISION", help="number of a change set")
VERBS: Sequence[Verb] = (
    Verb(("cfg", "ls"), "list keys with what holds", list_keys, (*(each for each in LIST[:1]), JSON, CSV, QUIET, URL, WEB)),
    Verb(
        ("cfg", "get"),
        "what holds for a key, and where that comes from",
        get,
        (option("key", metavar="KEY", help="component.NAME, parts filled in; or NAME alone"), _KEY_VO, JSON, QUIET, URL, WEB),
    ),
    Verb(
        ("cfg", "set"),
        "override keys: see what that would do, then apply it",
        set_keys,
        (
            option("keys", nargs="+", metavar="KEY=VALUE", help="as jobbroker.NQUEUELIMITSITE=30"),
            _KEY_VO,
            option("--for", dest="span", metavar="SPAN", help="only so long, like 2d or 90m; then what was before holds again"),
            *APPLY,
        ),
    ),
    Verb(
        ("cfg", "unset"),
        "remove overrides: see what that would do, then apply it",
        unset_keys,
        (option("keys", nargs="+", metavar="KEY", help="component.NAME"), _KEY_VO, *APPLY),
    ),
    Verb(
        ("cfg", "export"),
        "print overrides, shares and work queues as a draft to keep or edit",
        export,
        (
            option("--vo", default="", metavar="VO", help="only what is for this VO"),
            option("--yaml", action="store_true", help="as YAML, a member a line"),
        ),
    ),
    Verb(("cfg", "diff"), "what a draft would change", diff, (FILE, ONLY, OF_VO, BASE, JSON)),
    Verb(("cfg", "apply"), "import a draft: see what it would do, then apply it", apply, (FILE, ONLY, OF_VO, BASE, *APPLY)),
    Verb(("cfg", "history"), "list change sets, newest first", history, LIST),
    Verb(("cfg", "show"), "tell of one change set", show, (_REVISION, JSON, URL, WEB)),
    Verb(("cfg", "revert"), "take a change set back", revert, (_REVISION, REASON, DRY, YES, JSON)),
)
