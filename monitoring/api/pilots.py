"""`/api/v1/pilots/`: pilots, newest first, and one of them with its jobs and last asks."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_view
from rest_framework import mixins, serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.rest import principal
from broker_site.foundation.rest import keyset
from broker_site.foundation.rest.openapi import refusals
from broker_site.foundation.rest.paging import NewestFirst
from brokerage.api.filtering import PILOT_STATES, PilotFilter
from brokerage.api.last_asks import AskShown
from brokerage.models import Pilot
from brokerage.states import JOB
from monitoring.queries.pilots import MOST_ASKS, find_pilot, pilot_details, pilots_page, visible_pilots

READ, JOBS_READ = "grid:read", "job:read"
EXAMPLE = {
    "id": "5f0c2b1e-7a44-4f0e-9d2b-3a1c6f7e8d90", "state": "busy", "queue": "CERN-P1", "site": "CERN", "host": "wn042",
    "slot": "slot1_3@wn042", "core_count": 8, "memory_mb": 16000, "disk_mb": 60000, "jobs": [4711], "others": 0,
    "idle_since": None, "registered_at": "2026-11-27T06:12:30Z", "last_seen": "2026-11-27T09:41:02Z",
}  # fmt: skip
EXAMPLE_JOB = {"id": 4711, "task_id": 7, "attempt_nr": 0, "status": "running", "status_since": "2026-11-27T09:02:11Z"}
EXAMPLE_ASK = {
    "at": "2026-11-27T09:02:10Z", "pilot_id": EXAMPLE["id"], "outcome": "matched", "jobs": [4711], "offer": "8 cores, 16,000 MB",
    "text": "it got jobs", "task_queue": 31, "lacks": [], "limits": [], "unknown": [], "took_ms": 2.4,
}  # fmt: skip


class PilotShown(serializers.Serializer[Any]):
    """One pilot as lists show it."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(PILOT_STATES, help_text="busy: holds jobs; idle: waits for one; quiet: neither; gone")
    queue = serializers.CharField(help_text="computing queue that it serves")
    site = serializers.CharField()
    host = serializers.CharField(help_text="machine that it runs on")
    slot = serializers.CharField(help_text="name of its slot there")
    core_count = serializers.IntegerField(help_text="cores that it has")
    memory_mb = serializers.IntegerField(help_text="memory that it has, MB; 0: not told")
    disk_mb = serializers.IntegerField(help_text="disk that it has, MB; 0: not told")
    jobs = serializers.ListField(child=serializers.IntegerField(), help_text="jobs that it holds, of the caller's VOs")
    others = serializers.IntegerField(help_text="how many of other VOs it holds")
    idle_since = serializers.DateTimeField(allow_null=True, help_text="since when it waits for a job; null: it does not")
    registered_at = serializers.DateTimeField()
    last_seen = serializers.DateTimeField(help_text="when it was last heard of, to about a minute")


class PilotJob(serializers.Serializer[Any]):
    """A job that a pilot holds or had."""

    id = serializers.IntegerField()
    task_id = serializers.IntegerField()
    attempt_nr = serializers.IntegerField()
    status = serializers.ChoiceField(list(JOB.states))
    status_since = serializers.DateTimeField()


class PilotWhole(PilotShown):
    """One pilot with its jobs and last asks."""

    holds = PilotJob(many=True, help_text="jobs that it holds, of the caller's VOs, the oldest first")
    ended = PilotJob(many=True, help_text="jobs that these asks got and that have ended, the newest first")
    asks = AskShown(many=True, help_text=f"its asks among the last {MOST_ASKS} of its queue, the newest first")


class ByRegistration(NewestFirst):
    """Pages in the order of registration: pilots have no numbers that grow."""

    def get_paginated_response_schema(self, schema: Any) -> Any:
        """With what a page with one pilot has beside it, for the example."""
        whole = super().get_paginated_response_schema(schema)
        for name in ("next", "previous", "looked_down_to"):
            whole["properties"][name]["example"] = None
        return whole

    def page_of(self, queryset: Any, size: int, cursor: keyset.Cursor | None, view: Any) -> keyset.Page[Any]:
        return pilots_page(queryset, visible_vos(principal(view.request), READ), size, cursor)


@extend_schema(tags=["grid"])
@extend_schema_view(
    list=extend_schema(
        summary="List pilots",
        description="In the order of their registration, newest first. A pilot that was long not heard of is gone from here.",
        responses={200: PilotShown(many=True), **refusals(400)},
        examples=[OpenApiExample("A pilot at work", EXAMPLE, response_only=True)],
    )
)
class Pilots(mixins.ListModelMixin, viewsets.GenericViewSet[Pilot]):
    """Pilots of all queues; the grid is the same for all VOs, the jobs are those of the caller's."""

    queryset = Pilot.objects.none()
    serializer_class = PilotShown
    pagination_class = ByRegistration
    filterset_class = PilotFilter
    permissions = {"list": READ, "retrieve": READ}

    def get_queryset(self) -> QuerySet[Pilot]:
        return visible_pilots(visible_vos(principal(self.request), READ))

    @extend_schema(
        summary="Read a pilot",
        responses={200: PilotWhole, **refusals(404)},
        examples=[
            OpenApiExample(
                "A pilot at work",
                {**EXAMPLE, "holds": [EXAMPLE_JOB], "ended": [], "asks": [EXAMPLE_ASK]},
                response_only=True,
            )
        ],
    )
    def retrieve(self, request: Request, pilot_id: UUID) -> Response:
        """What it does, the jobs that it holds and had, and what its last asks got."""
        found = find_pilot(pilot_id)
        if found is None:
            raise Http404("There is no such pilot, or it is gone for long.")
        details = pilot_details(found, visible_vos(principal(request), JOBS_READ))
        jobs = {"holds": details.holds, "ended": details.ended, "asks": details.asks}
        row = PilotShown(details.row).data
        return Response({**row, **{name: PilotWhole().fields[name].to_representation(rows) for name, rows in jobs.items()}})
