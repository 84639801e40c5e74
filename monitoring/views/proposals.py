"""One change that waits for a second person, or what became of it."""

from __future__ import annotations

from datetime import datetime

from django.http import Http404, HttpRequest, HttpResponseBase

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.permissions import may
from broker_site.foundation.access.sessions import password_is_fresh
from broker_site.foundation.gdpconfig.changesets import Place, in_words
from broker_site.foundation.gdpconfig.visible_lines import seen_proposals, sees
from broker_site.foundation.kernel import clock
from monitoring.queries.database import alias
from monitoring.views.page import page, scope_of, show

MOST = 1_000
"""Characters of a value that are shown."""
READ, DRAFT = "config:read", "change:draft"


@page(READ)
def proposal(request: HttpRequest, proposal_id: int) -> HttpResponseBase:
    """The lines, who proposed them and why, and the forms by which somebody else decides."""
    caller, scope = authenticate(request), scope_of(request, READ)
    found = seen_proposals(scope, alias()).filter(pk=proposal_id).first() if proposal_id < 1 << 63 else None
    if found is None:
        raise Http404(f"There is no proposal {proposal_id}.")
    seen = [line for line in found.lines if sees(scope, line["kind"], line["vo"])]
    places = [(Place(*(line[name] for name in Place._fields)), line) for line in seen]
    context = {
        "proposal": found,
        "lines": [
            (str(place), in_words(place.kind, line["before"], line["after"], MOST), _time(line["until"]))
            for place, line in places
        ],
        "n_hidden": len(found.lines) - len(seen),
        "waits": not found.outcome and found.expires_at > clock.now(),
        "own": found.who == caller.name,
        "may_edit": may(caller, DRAFT),
        "asks_password": not password_is_fresh(request.session),
    }
    return show(request, "proposal.html", "changes", context)


def _time(text: str | None) -> datetime | None:
    """A time as a line of a proposal keeps it."""
    return datetime.fromisoformat(text) if text else None
