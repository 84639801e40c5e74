"""The page of one transfer, which tells the way of its file, with its JSON; and the page of one link between sites."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase, JsonResponse

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.permissions import may
from brokerage.models import Site
from brokerage.queries.transfer_links import link_row
from brokerage.states import TRANSFER
from monitoring.queries.database import alias
from monitoring.queries.transfers import TransferDetails, find_transfer, rows_of, transfer_details, transfers_on_link
from monitoring.views.page import page, scope_of, show
from monitoring.wording import WORDS

READ = "transfer:read"
COPY = ("storage", "state", "kind", "last_used", "keep_until")
WISH = ("role", "job_id", "task_id", "vo", "owner", "created_at", "closed_at")


@page(READ, ())
def transfer(request: HttpRequest, transfer_id: int, data: bool = False) -> HttpResponseBase:
    """Why the file is not there yet, its copies, who wants it, attempts, and other transfers of it."""
    scope = scope_of(request, READ)
    row = find_transfer(transfer_id, scope)
    if row is None:
        raise Http404(f"There is no transfer {transfer_id}, or it belongs to a VO that you cannot look into.")
    details = transfer_details(row, scope)
    if data:
        return JsonResponse(_document(details))
    visitor, final = authenticate(request), row.status in TRANSFER.final
    context = {
        "transfer": row,
        "details": details,
        "word": WORDS["transfer"][row.status],
        "final": final,
        "may_retry": (final or row.next_at is not None) and may(visitor, "transfer:retry", row.vo),
        "may_cancel": not final and may(visitor, "transfer:cancel", row.vo),
    }
    return show(request, "transfer.html", "transfers", context)


def _document(details: TransferDetails) -> dict[str, Any]:
    """As JSON; `why` is the sentence of the page."""
    changes = [{name: getattr(change, name) for name in ("at", "storage", "what", "who", "why")} for change in details.changes]
    copies = [{name: getattr(copy, name) for name in COPY} for copy in details.copies]
    wishes = [{name: getattr(wish, name) for name in WISH} for wish in details.wishes]
    return {
        **asdict(rows_of([details.row])[0]),
        "why": details.why,
        "copies": copies,
        "copy_changes": changes,
        "wishes": wishes,
        "history": [asdict(move) for move in details.moves],
        "others": [asdict(other) for other in details.others],
    }


@page("grid:read")
def link(request: HttpRequest, source: str, destination: str) -> HttpResponseBase:
    """What is on a link, its limits, and the form that edits them."""
    sites = {source, destination}
    if Site.objects.using(alias()).filter(name__in=sites).count() != len(sites):
        raise Http404(f"There is no link from {source[:60]} to {destination[:60]}: a link leads from a site to a site.")
    context = {
        "link": link_row(source, destination, alias()),
        "transfers": transfers_on_link(source, destination, scope_of(request, READ)),
        "may_edit": may(authenticate(request), "link:edit"),
    }
    return show(request, "link.html", "links", context)
