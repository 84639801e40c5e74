"""A list in all its forms: page, panel, JSON, CSV. Lists differ in what they filter, read and show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.permissions import VoScope, may
from broker_site.foundation.access.problems import problem_response
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.verdict import Problem
from monitoring.tables import keyset
from monitoring.tables.exports import MOST, csv_answer, json_answer
from monitoring.tables.filters import ANY, ListFilter
from monitoring.tables.selection import PLACE, Selection, read
from monitoring.views.page import scope_of, show

STEP = 1000
"""Rows that a CSV reads at once."""
MEDIA = {"application/json": "json", "text/csv": "csv"}


@dataclass(frozen=True)
class LongList:
    """A list of a big table, by descending id, page by page."""

    name: str
    kind: type[Any]
    template: str
    filters: type[ListFilter]
    table: Callable[[VoScope], QuerySet[Any]]
    rows: Callable[[QuerySet[Any]], list[Any]]
    permission: str
    paged: bool = True
    around: Callable[[], Mapping[str, Any]] = dict
    """What its page shows beside the rows."""

    def page(self, request: HttpRequest, selection: Selection, form: Any) -> keyset.Page[Any]:
        """Without leafing through other rows where an index finds them, or has those of a VO in the order shown."""
        filled = {name for name in selection.names if selection.parameters.get(name)}
        narrow = bool(filled & self.filters.narrow) or filled <= {"vo"}
        return keyset.page(form.qs, self.rows, selection.size, selection.cursor, narrow=narrow)

    def all(self, request: HttpRequest, selection: Selection, form: Any) -> Iterator[Any]:
        """The filtered table from the cursor down."""
        return keyset.walk(form.qs, self.rows, selection.cursor, step=STEP, most=MOST + 1)


@dataclass(frozen=True)
class ShortList:
    """A list that is shown whole."""

    name: str
    kind: type[Any]
    template: str
    rows: Callable[[VoScope], Sequence[Any]]
    permission: str
    filters: None = None
    paged: bool = False
    around: Callable[[], Mapping[str, Any]] = dict
    """What its page shows beside the rows."""

    def page(self, request: HttpRequest, selection: Selection, form: Any) -> keyset.Page[Any]:
        table = self.rows(scope_of(request, self.permission))
        return keyset.Page(table, None, None, keyset.Count(len(table), more=False))

    def all(self, request: HttpRequest, selection: Selection, form: Any) -> Iterator[Any]:
        return iter(self.rows(scope_of(request, self.permission)))


def answer(
    request: HttpRequest, listing: LongList | ShortList, form: str, more: Mapping[str, Any] | None = None
) -> HttpResponseBase:
    """The list in the asked form: that of the address, else the one of the Accept header."""
    selection = read(request.GET, listing.filters, paged=listing.paged)
    if form == "html":
        form = MEDIA.get(request.get_preferred_type(["text/html", *MEDIA]) or "", "html")
    if form == "html" and not selection.tidy and request.headers.get("HX-Request") != "true":
        return HttpResponseRedirect(request.path + selection.tidy_address)
    filters: Any = None
    if isinstance(listing, LongList):
        table = listing.table(scope_of(request, listing.permission))
        filters = listing.filters(selection.parameters, queryset=table, request=request)
    faults = dict(selection.faults)
    if filters is not None and not filters.form.is_valid():
        faults |= {name: " ".join(messages) for name, messages in filters.form.errors.items()}
    if form == "html":
        return _html(request, listing, selection, filters, faults, more or {})
    if faults:
        errors = [Problem(name, "value", message) for name, message in faults.items()]
        return problem_response(400, "Bad parameters", "Some parameters of the address cannot be used.", errors)
    if form == "csv":
        return csv_answer(listing.kind, listing.all(request, selection, filters), listing.name, selection.warnings)
    page = listing.page(request, selection, filters)
    return json_answer(page.rows, _around(request, page, selection))


def _around(request: HttpRequest, page: keyset.Page[Any], selection: Selection) -> dict[str, Any]:
    def link(cursor: keyset.Cursor | None) -> str | None:
        return request.build_absolute_uri(request.path + selection.address(cursor=cursor.text())) if cursor else None

    return {
        "next": link(page.older),
        "previous": link(page.newer),
        "count": str(page.count) if page.count else None,
        "as_of": clock.now(),
        "warnings": list(selection.warnings),
    }


def _html(
    request: HttpRequest,
    listing: LongList | ShortList,
    selection: Selection,
    filters: Any,
    faults: Mapping[str, str],
    more: Mapping[str, Any],
) -> HttpResponseBase:
    empty: keyset.Page[Any] = keyset.Page([], None, None, None)
    page = empty if faults else listing.page(request, selection, filters)
    context = {
        "listing": listing,
        "page": page,
        "selection": selection,
        "form": filters.form if filters is not None else None,
        "faults": faults,
        "wider": wider(listing, selection) if not page.rows and not faults else "",
        "data_path": f"/{listing.name}",
        "may_bulk": listing.name in ("tasks", "jobs") and may(authenticate(request), "bulk:make"),
        **listing.around(),
        **more,
    }
    knows = (*selection.names, *PLACE) if listing.paged else ()
    return show(request, listing.template, listing.name, context, status=400 if faults else 200, knows=knows)


def wider(listing: LongList | ShortList, selection: Selection) -> str:
    """Where a text filter stood for itself and found nothing: the same list with `*` around it."""
    texts = listing.filters.texts if listing.filters else ()
    exact = {name: str(selection.parameters[name]) for name in texts if selection.parameters.get(name)}
    anywhere = {name: f"{ANY}{text}{ANY}" for name, text in exact.items() if ANY not in text}
    return selection.address(cursor=None, **anywhere) if anywhere else ""
