"""`token`: your own tokens."""

from __future__ import annotations

from collections.abc import Sequence

from broker_site.client.command import terminal
from broker_site.client.command.grammar import CSV, IDS, JSON, QUIET, URL, WEB, YES, Verb, option
from broker_site.client.command.lists import limited
from broker_site.client.command.printer import Column, column
from broker_site.client.command.session import Session, numbers
from broker_site.client.errors import OK, USAGE
from broker_site.client.own_tokens import USUAL_DAYS

TOKENS = (
    column("id", right=True), column("prefix"), Column("vo", lambda row: row["vo"] or "all"),
    Column("roles", lambda row: row["roles"] or "all"),
    Column("state", lambda row: "revoked" if row["revoked_at"] else ""),
    Column("ends (UTC)", lambda row: terminal.moment(row["expires_at"]) if row["expires_at"] else "never"),
    Column("used (UTC)", lambda row: terminal.moment(row["last_used"]) if row["last_used"] else "never"), column("note"),
)  # fmt: skip


def list_tokens(session: Session) -> int:
    if not session.page("/me/tokens/"):
        session.printer.rows(limited(session, session.client.tokens.list(limit=None)), TOKENS)
    return OK


def new(session: Session) -> int:
    """Its text alone on standard output, so that it can be piped where it is kept."""
    options = session.options
    made = session.client.tokens.new(options.vo, options.roles or (), options.days, options.note)
    session.printer.document(made, [made["token"]])
    session.tell(f"token {made['id']} ends {terminal.moment(made['expires_at'])} UTC; its text is not shown again")
    return OK


def revoke(session: Session) -> int:
    ids = numbers(session.options.ids, session.stdin)
    if not session.sure("revoke", ids, "token"):
        session.tell("nothing was done")
        return USAGE

    def give(number: int) -> None:
        session.client.tokens.revoke(number)
        session.printer.document({"id": number, "status": "revoked"}, [f"token {number} is revoked"])

    return session.each(ids, give)


VERBS: Sequence[Verb] = (
    Verb(
        ("token", "ls"),
        "list your tokens, newest first",
        list_tokens,
        (option("-n", "--limit", type=int, metavar="N", help="rows at most, 0 for all (100)"), JSON, CSV, QUIET, URL, WEB),
    ),
    Verb(
        ("token", "new"),
        "make a token with no more than your rights",
        new,
        (
            option("--vo", default="", metavar="VO", help="only in this VO"),
            option("--role", dest="roles", action="append", metavar="ROLE", help="only this role of yours; several are allowed"),
            option("--days", type=int, default=USUAL_DAYS, metavar="N", help=f"how long it lives ({USUAL_DAYS})"),
            option("--note", default="", metavar="TEXT", help="what it is for"),
            JSON,
        ),
    ),
    Verb(("token", "revoke"), "end tokens of yours at once", revoke, (IDS, YES, JSON)),
)
