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
from broker_site.foundation.rest import keyset
from broker_site.foundation.rest.filtering import ListFilter
from monitoring.tables.exports import json_answer
from monitoring.tables.facets import Facet
from monitoring.tables.form import form_of, wider
from monitoring.tables.selection import ALSO, PLACE, Fault, Selection, faults_of, read
from monitoring.views.export import export
from monitoring.views.page import scope_of, show
from monitoring.views.saved import saved_views

STEP = 1000
"""Rows that a CSV reads at once."""
MEDIA = {"application/json": "json", "text/csv": "csv"}


Facets = Callable[[VoScope, Selection], Sequence[Facet]]


def no_facets(scope: VoScope, selection: Selection) -> Sequence[Facet]:
    """A list without facets."""
    return ()


def nothing_around(scope: VoScope) -> Mapping[str, Any]:
    """A list with nothing beside its rows."""
    return {}


@dataclass(frozen=True)
class LongList:
    """A list of a big table, by descending id, page by page. `first`: the filters that are always seen."""

    name: str
    kind: type[Any]
    template: str
    filters: type[ListFilter]
    table: Callable[[VoScope], QuerySet[Any]]
    rows: Callable[[QuerySet[Any]], list[Any]]
    permission: str
    first: Sequence[str]
    facets: Facets = no_facets
    paged: bool = True
    around: Callable[[VoScope], Mapping[str, Any]] = nothing_around
    """What its page shows beside the rows."""

    def page(self, scope: VoScope, selection: Selection, filters: Any) -> keyset.Page[Any]:
        """Without leafing through other rows where an index serves the filter, or has the rows of a VO in the order shown."""
        return keyset.page(filters.qs, self.rows, selection.size, selection.cursor, narrow=filters.narrows, at_once=True)

    def all(self, scope: VoScope, selection: Selection, filters: Any) -> Iterator[Any]:
        """The filtered table from the cursor down, some rows at a time."""
        return keyset.walk(filters.qs, self.rows, selection.cursor, step=STEP, narrow=filters.narrows)


@dataclass(frozen=True)
class ShortList:
    """A list that is shown whole. `table`: what its filters choose from, by which `rows` then are read."""

    name: str
    kind: type[Any]
    template: str
    rows: Callable[..., Sequence[Any]]
    permission: str
    filters: type[ListFilter] | None = None
    table: Callable[[VoScope], QuerySet[Any]] | None = None
    first: Sequence[str] = ()
    facets: Facets = no_facets
    paged: bool = False
    around: Callable[[VoScope], Mapping[str, Any]] = nothing_around
    """What its page shows beside the rows."""

    def page(self, scope: VoScope, selection: Selection, filters: Any) -> keyset.Page[Any]:
        table = self.all(scope, selection, filters)
        return keyset.Page(table, None, None, keyset.Count(len(table), more=False))

    def all(self, scope: VoScope, selection: Selection, filters: Any) -> Sequence[Any]:
        return self.rows(scope) if filters is None else self.rows(scope, filters.qs)


def answer(
    request: HttpRequest, listing: LongList | ShortList, form: str, more: Mapping[str, Any] | None = None
) -> HttpResponseBase:
    """The list in the asked form: that of the address, else the one of the Accept header."""
    scope, filters, of = scope_of(request, listing.permission), None, ""
    table = listing.table(scope) if listing.table is not None else None
    if table is not None:
        of = keyset.name_of(table.model)
    selection = read(request.GET, listing.filters, table=of, paged=listing.paged)
    if form == "html":
        form = MEDIA.get(request.get_preferred_type(["text/html", *MEDIA]) or "", "html")
    if form == "html" and not selection.tidy and request.headers.get("HX-Request") != "true":
        return HttpResponseRedirect(request.path + selection.tidy_address)
    faults = dict(selection.faults)
    if listing.filters is not None:
        filters = listing.filters(selection.parameters, queryset=table, request=request)
        faults = faults_of(selection, filters)
    if form == "html":
        return _html(request, listing, selection, scope, filters, faults, more or {})
    errors = [Problem(name, fault.rule, fault.message) for name, fault in faults.items()]
    errors += selection.unknown
    if errors:
        return problem_response(400, "Not valid", "Each fault is listed in errors.", errors)
    if form == "csv":
        return export(request, listing.kind, iter(listing.all(scope, selection, filters)), listing.name)
    page = listing.page(scope, selection, filters)
    return json_answer(page.rows, _around(request, page, selection))


def _around(request: HttpRequest, page: keyset.Page[Any], selection: Selection) -> dict[str, Any]:
    def link(cursor: keyset.Cursor | None) -> str | None:
        return request.build_absolute_uri(request.path + selection.address(cursor=cursor.text())) if cursor else None

    return {
        "next": link(page.older),
        "previous": link(page.newer),
        "count": str(page.count) if page.count else None,
        "looked_down_to": page.looked_down_to,
        "as_of": clock.now(),
    }


def _html(
    request: HttpRequest,
    listing: LongList | ShortList,
    selection: Selection,
    scope: VoScope,
    filters: Any,
    faults: Mapping[str, Fault],
    more: Mapping[str, Any],
) -> HttpResponseBase:
    empty: keyset.Page[Any] = keyset.Page([], None, None, None)
    page = empty if faults else listing.page(scope, selection, filters)
    panel_only = request.headers.get("HX-Request") == "true"
    context = {
        "listing": listing,
        "page": page,
        "selection": selection,
        "form": form_of(filters, selection, listing.first) if filters is not None else None,
        "facets": () if panel_only else listing.facets(scope, selection),
        "faults": faults,
        "wider": wider(filters, selection) if filters is not None and not page.rows and not faults else "",
        "data_path": f"/{listing.name}",
        **(saved_views(request, listing.name) if listing.filters is not None else {}),
        "may_submit": listing.name == "tasks" and may(authenticate(request), "task:submit"),
        "may_bulk": listing.name in ("tasks", "jobs") and may(authenticate(request), "bulk:make"),
        **listing.around(scope),
        **more,
    }
    known = (*PLACE, *ALSO, *(listing.filters.aliases if listing.filters else ())) if listing.paged else ()
    knows = (*selection.names, *known)
    return show(request, listing.template, listing.name, context, status=400 if faults else 200, knows=knows)
