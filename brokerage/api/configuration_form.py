"""What the pages' forms do with the configuration: apply a draft, take a set back."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_POST

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.guards import page_requires
from broker_site.foundation.access.password_again import password_again
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.gdpconfig.changesets import Draft
from broker_site.foundation.gdpconfig.draft_form import FIELDS, draft_lines, sent_base, sent_rows
from broker_site.foundation.gdpconfig.keys import BadConfig
from broker_site.foundation.gdpconfig.store import revert_draft
from broker_site.foundation.gdpconfig.two_person import RULE
from brokerage.api.configuration import EDIT, apply_as, set_of, whole_set_of
from brokerage.api.proposals import propose_as

MOST_TOLD = 5


@page_requires(EDIT)
@require_POST
def apply_form(request: HttpRequest) -> HttpResponseBase:
    """Apply the lines of the draft and go to the set that they made; what is wrong is told at the draft."""
    sent = request.POST
    back = QueryDict(mutable=True)
    for field in (*FIELDS, "base"):
        back.setlist(field, sent.getlist(field))

    def draft() -> Draft:
        lines = draft_lines(sent_rows(sent))
        why, ticket = sent.get("why", ""), sent.get("ticket", "").strip()
        return Draft(lines, _who(request), why, "page", ticket=ticket, base=sent_base(sent))

    return _applied(request, draft, f"{reverse('page-config-draft')}?{back.urlencode()}")


@page_requires(EDIT)
@require_POST
def revert_form(request: HttpRequest, revision: int) -> HttpResponseBase:
    """Take the set back and go to the one that does it."""
    caller = authenticate(request)
    set_of(caller, revision)

    def draft() -> Draft:
        made = whole_set_of(caller, revision)
        return revert_draft(made, who=_who(request), why=request.POST.get("why", ""), source="page")

    return _applied(request, draft, reverse("page-change-set", args=[revision]))


def _applied(request: HttpRequest, draft: Callable[[], Draft], back: str) -> HttpResponseBase:
    asked = password_again(request)
    if asked.refused is not None:
        return asked.refused
    if not asked.fresh:
        messages.error(request, f"Nothing was changed. {asked.fault or 'Give your password too.'}")
        return HttpResponseRedirect(back)
    wanted: Draft | None = None
    try:
        wanted = draft()
        made = apply_as(authenticate(request), wanted)
    except Refused as refused:
        messages.error(request, refused.detail)
        return HttpResponseRedirect(back)
    except BadConfig as bad:
        if wanted is not None and {problem.rule for problem in bad.problems} == {RULE}:
            return _proposed(request, wanted, back)
        told = "; ".join(problem.message for problem in bad.problems[:MOST_TOLD])
        messages.error(request, f"Nothing was changed: {told}.")
        return HttpResponseRedirect(back)
    if made is None:
        messages.warning(request, "Nothing was changed: all of it holds already.")
        return HttpResponseRedirect(back)
    messages.success(request, f"Applied as revision {made.revision}. It holds everywhere within two seconds.")
    return HttpResponseRedirect(reverse("page-change-set", args=[made.revision]))


def _proposed(request: HttpRequest, draft: Draft, back: str) -> HttpResponseBase:
    """Keep what takes two people for the second one."""
    try:
        made = propose_as(authenticate(request), draft)
    except BadConfig as bad:
        messages.error(request, f"Nothing was proposed: {bad}.")
        return HttpResponseRedirect(back)
    if made is None:
        return HttpResponseRedirect(back)
    messages.success(request, "Proposed. Nothing is changed before somebody else approves it.")
    return HttpResponseRedirect(reverse("page-proposal", args=[made.id]))


def _who(request: HttpRequest) -> str:
    return authenticate(request).name
