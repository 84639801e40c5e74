"""Changes that one person proposes and another approves: kept as drafts until somebody decides or their time is over.

What is approved is applied by `store` as it was proposed, and refused where something it rests on was changed since.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, cast

from django.db import transaction

from broker_site.foundation import gdpconfig
from broker_site.foundation.gdpconfig.changesets import MAX_WHY, Draft, Line, Source, signature_problems
from broker_site.foundation.gdpconfig.keys import BadConfig
from broker_site.foundation.gdpconfig.models import ChangeSet, Proposal
from broker_site.foundation.gdpconfig.store import apply, preview
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.verdict import Problem

OUTCOMES = APPROVED, REFUSED, WITHDRAWN, EXPIRED = "approved", "refused", "withdrawn", "expired"


def propose(draft: Draft) -> Proposal | None:
    """Keep a draft for somebody else to approve; None where it would change nothing. BadConfig as `store.apply`."""
    problems = list(signature_problems(draft))
    try:
        steps = preview(draft)
    except BadConfig as bad:
        raise BadConfig(*problems, *bad.problems) from None
    if problems:
        raise BadConfig(*problems)
    lines: list[dict[str, Any]] = [
        {
            **step.place._asdict(),
            "before": step.before,
            "after": step.after,
            "until": step.until.isoformat() if step.until else None,
        }
        for step in steps
        if step.differs
    ]
    if not lines:
        return None
    life_s = gdpconfig.value("gdpconfig", "PROPOSAL_LIFETIME")
    return Proposal.objects.create(
        who=draft.who.strip(),
        why=draft.why.strip(),
        ticket=draft.ticket.strip(),
        source=draft.source,
        reverts_id=draft.reverts,
        lines=lines,
        expires_at=clock.now() + timedelta(seconds=life_s),
    )


def draft_of(proposal: Proposal) -> Draft:
    """What would be applied, as it was proposed."""
    return Draft(
        [_line(line) for line in proposal.lines],
        proposal.who,
        proposal.why,
        cast("Source", proposal.source),
        ticket=proposal.ticket,
        reverts=proposal.reverts_id,
    )


def approve(number: int, who: str) -> ChangeSet | None:
    """Apply a proposal; None where all of it holds by now. BadConfig: by its author, decided or over, or as `store.apply`."""
    with transaction.atomic():
        proposal = _open(number)
        if proposal.who == who:
            raise BadConfig(Problem("who", "author", "who proposes a change does not approve it: somebody else has to"))
        made = apply(draft_of(proposal), approved_by=who)
        proposal.change_set = made
        _decide(proposal, APPROVED, who, "")
        return made


def decline(number: int, who: str, why: str) -> Proposal:
    """Refuse a proposal, or withdraw one's own, with a reason. BadConfig: decided or over, no reason."""
    if not why.strip() or len(why) > MAX_WHY or "\x00" in why:
        raise BadConfig(Problem("why", "required", f"a reason is needed (at most {MAX_WHY} characters)"))
    with transaction.atomic():
        proposal = _open(number)
        _decide(proposal, WITHDRAWN if proposal.who == who else REFUSED, who, why.strip())
        return proposal


def end_proposals(now: datetime) -> int:
    """Close those whose time is over; how many."""
    over = Proposal.objects.filter(outcome="", expires_at__lte=now)
    return over.update(outcome=EXPIRED, decided_at=now, decided_by="expiry")


def _open(number: int) -> Proposal:
    """The proposal, locked. BadConfig where nothing is left to decide."""
    proposal = Proposal.objects.select_for_update().filter(pk=number).first()
    if proposal is None:
        raise BadConfig(Problem("proposal", "unknown", f"there is no proposal {number}"))
    if proposal.outcome:
        raise BadConfig(Problem("proposal", "decided", f"it was {proposal.outcome} by {proposal.decided_by}"))
    if proposal.expires_at <= clock.now():
        raise BadConfig(Problem("proposal", "expired", "its time is over: propose it again"))
    return proposal


def _decide(proposal: Proposal, outcome: str, who: str, why: str) -> None:
    proposal.outcome, proposal.decided_by, proposal.decided_why, proposal.decided_at = outcome, who, why, clock.now()
    proposal.save(update_fields=["outcome", "decided_by", "decided_why", "decided_at", "change_set"])


def _line(line: dict[str, Any]) -> Line:
    return Line(
        line["component"],
        line["name"],
        line["after"],
        remove=line["after"] is None,
        vo=line["vo"],
        app=line["app"],
        until=datetime.fromisoformat(line["until"]) if line["until"] else None,
        kind=line["kind"],
        says_before=True,
        before=line["before"],
    )
