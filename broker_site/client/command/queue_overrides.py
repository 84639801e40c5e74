"""`queue set` and `queue unset`: attributes of a queue by hand, over what its document says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from broker_site.client.command import terminal
from broker_site.client.command.grammar import JSON, NAME, Verb, option
from broker_site.client.command.lists import time_span
from broker_site.client.command.session import Session, filters
from broker_site.client.errors import OK, Unusable


def set_attributes(session: Session) -> int:
    options = session.options
    if options.until and options.span:
        raise Unusable("Said twice", "--until and --for", "both say when the override ends: leave one of them out")
    until = options.until or None
    if options.span:
        until = (datetime.now(timezone.utc) + time_span(options.span)).isoformat(timespec="seconds")
    return _override(session, filters(options.attributes, like="status=offline"), until)


def unset_attributes(session: Session) -> int:
    return _override(session, dict.fromkeys(session.options.attributes), None)


def _override(session: Session, attributes: Mapping[str, str | None], until: str | None) -> int:
    """Tell what holds of the attributes now."""
    options = session.options
    if not options.reason:
        raise Unusable("Without a reason", "", "--reason TEXT says why; it stands wherever the override is told")
    there = {row["attribute"]: row for row in session.client.queues.override(options.name, attributes, options.reason, until)}
    for attribute in attributes:
        row = there.get(attribute)
        if row is None:
            session.printer.document({"attribute": attribute}, [f"{options.name}.{attribute} is as its document says"])
            continue
        end = f" until {terminal.moment(row['until'])} UTC" if row["until"] else ""
        beneath = "nothing" if row["beneath"] is None else row["beneath"]
        words = f"{options.name}.{attribute} = {row['value'] or 'the default'}{end}; its document says {beneath}"
        session.printer.document(row, [words], key="attribute")
    return OK


_REASON = option("-m", "--reason", default="", metavar="TEXT", help="why; needed")
VERBS: Sequence[Verb] = (
    Verb(
        ("queue", "set"),
        "set attributes of a computing queue by hand, over what its document says",
        set_attributes,
        (
            NAME,
            option("attributes", nargs="+", metavar="ATTRIBUTE=VALUE", help="as in the grid document: status=offline"),
            option("--until", default="", metavar="TIME", help="when it ends by itself, like 2026-12-01T12:00:00Z"),
            option("--for", dest="span", metavar="SPAN", help="or only so long, like 2d or 90m"),
            _REASON,
            JSON,
        ),
    ),
    Verb(
        ("queue", "unset"),
        "take such attributes away: what its document says holds again",
        unset_attributes,
        (NAME, option("attributes", nargs="+", metavar="ATTRIBUTE", help="as status"), _REASON, JSON),
    ),
)
