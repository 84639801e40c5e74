"""The list of pilots, whose order is the time of registration; and the page of one: its jobs and its last asks, with JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponseBase, JsonResponse

from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.rest import keyset
from brokerage.queries.last_asks import AsksAtQueue
from monitoring.queries.pilots import find_pilot, pilot_details, pilots_page, walk_pilots
from monitoring.tables.selection import Selection
from monitoring.views.listing import STEP, LongList
from monitoring.views.page import page, scope_of, show

READ = "grid:read"
JOBS_READ = "job:read"


class PilotList(LongList):
    """A list by (registered_at, id): pilots have no numbers that grow."""

    def page(self, scope: VoScope, selection: Selection, filters: Any) -> keyset.Page[Any]:
        return pilots_page(filters.qs, scope, selection.size, selection.cursor)

    def all(self, scope: VoScope, selection: Selection, filters: Any) -> Iterator[Any]:
        return walk_pilots(filters.qs, scope, selection.cursor, STEP)


@page(READ, ())
def pilot(request: HttpRequest, pilot_id: UUID, data: bool = False) -> HttpResponseBase:
    """What it does, the jobs that it holds and had, and what its last asks got."""
    row = find_pilot(pilot_id)
    if row is None:
        raise Http404("There is no such pilot, or it is gone for long.")
    details = pilot_details(row, scope_of(request, JOBS_READ))
    if data:
        asks = AsksAtQueue(details.row.queue, tuple(details.asks), ()).to_document()["asks"]
        jobs = {name: [asdict(job) for job in getattr(details, name)] for name in ("holds", "ended")}
        return JsonResponse({**asdict(details.row), **jobs, "asks": asks})
    return show(request, "pilot.html", "pilots", {"pilot": details.row, "details": details})
