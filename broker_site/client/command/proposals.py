"""`cfg proposals`, `cfg approve`, `cfg decline`: changes that one person proposes and another approves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from broker_site.client.command import terminal
from broker_site.client.command.drafting import change_lines, reasoned
from broker_site.client.command.grammar import CSV, JSON, QUIET, URL, WEB, YES, Verb, option
from broker_site.client.command.lists import limited
from broker_site.client.command.printer import Column, column
from broker_site.client.command.session import Session, numbers
from broker_site.client.drafts import place
from broker_site.client.errors import OK, USAGE, Unusable

Row = Mapping[str, Any]
WAITS = "waits"
PROPOSALS = (
    column("id", right=True), column("at", "when (UTC)"), column("who"), Column("state", lambda row: row["outcome"] or WAITS),
    Column("changes", lambda row: "; ".join(map(place, row["lines"]))), column("why"),
)  # fmt: skip


def list_proposals(session: Session) -> int:
    if not session.page("/changes/"):
        found = session.client.config.proposals(limit=None, **({} if session.options.all else {"open": "true"}))
        session.printer.rows(limited(session, found), PROPOSALS)
    return OK


def approve(session: Session) -> int:
    """What it would change is told first: somebody else has written it."""
    number = _number(session)
    if session.page(f"/changes/proposals/{number}/"):
        return OK
    proposal = session.client.config.proposal(number)
    session.printer.document(proposal, _lines(proposal))
    if not session.agreed(f"approve proposal {number}?"):
        session.tell("nothing was changed")
        return USAGE
    decided = session.client.config.approve(number)
    revision = decided["revision"]
    told = f"applied as revision {revision}" if revision else "all of it held already"
    session.printer.document(decided, [f"proposal {number} is approved: {told}"], key="revision")
    return OK


def decline(session: Session) -> int:
    """One's own is withdrawn, that of somebody else refused."""
    number = _number(session)
    if session.page(f"/changes/proposals/{number}/"):
        return OK
    reasoned(session)
    decided = session.client.config.decline(number, session.options.reason)
    session.printer.document(decided, [f"proposal {number} is {decided['outcome']}; nothing was changed"])
    return OK


def _lines(proposal: Row) -> Sequence[str]:
    ticket = f", ticket {proposal['ticket']}" if proposal["ticket"] else ""
    head = f"Proposal {proposal['id']} of {terminal.moment(proposal['at'])} UTC by {proposal['who']}{ticket}: {proposal['why']}"
    return [head, *(f"  {line}" for line in change_lines(proposal["lines"]))]


def _number(session: Session) -> int:
    (number,) = numbers([session.options.proposal], session.stdin)
    if not number:
        raise Unusable("Not a proposal", "0", "broker cfg proposals lists them")
    return number


_PROPOSAL = option("proposal", metavar="PROPOSAL", help="number of a proposal")
_WHY = option("-m", "--reason", default="", metavar="TEXT", help="why not; it is kept with the proposal")
VERBS: Sequence[Verb] = (
    Verb(
        ("cfg", "proposals"),
        "list changes that wait for somebody to approve them, newest first",
        list_proposals,
        (
            option("--all", action="store_true", help="also those that were decided or whose time is over"),
            option("-n", "--limit", type=int, metavar="N", help="rows at most, 0 for all (100)"), JSON, CSV, QUIET, URL, WEB,
        ),
    ),
    Verb(("cfg", "approve"), "see what somebody proposes, then apply it", approve, (_PROPOSAL, YES, JSON, URL, WEB)),
    Verb(("cfg", "decline"), "refuse a proposal, or withdraw one of yours", decline, (_PROPOSAL, _WHY, JSON, URL, WEB)),
)  # fmt: skip
