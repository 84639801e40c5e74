"""`/api/v1/grid/`, `/api/v1/queues/`, `/api/v1/sites/` and `/api/v1/feeds/`: the grid and where it comes from, to read."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import mixins, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from broker_site.foundation.rest.openapi import refusals
from broker_site.foundation.rest.paging import ByName
from brokerage.api.filtering import QueueFilter, SiteFilter
from brokerage.api.serializers import FeedShown, QueueShown, SiteShown
from brokerage.models import ComputingQueue, Feed, LocalOverride, Site
from brokerage.queries.idle_slots import idle_at_queues
from brokerage.queries.jobs import job_counts
from brokerage.queries.open_places import open_jobs_of_queues
from brokerage.queries.world import load_snapshot
from brokerage.rules.world.stored_snapshot import document, for_everybody

READ = "grid:read"


@extend_schema(tags=["grid"])
@extend_schema_view(
    list=extend_schema(
        summary="List computing queues",
        description="In the order of their names, each with its storage endpoints, its jobs by state, and how many "
        "open jobs its pilots could get.",
        responses={200: QueueShown(many=True), **refusals(400)},
    )
)
class QueuesView(mixins.ListModelMixin, viewsets.GenericViewSet[ComputingQueue]):
    """Computing queues; the grid is the same for all VOs."""

    queryset = ComputingQueue.objects.prefetch_related("storages")
    serializer_class = QueueShown
    pagination_class = ByName
    filterset_class = QueueFilter
    permissions = {"list": READ, "retrieve": READ}

    def get_serializer_context(self) -> dict[str, Any]:
        """The numbers of jobs, idle slots and the overrides, read once for all queues."""
        overrides: dict[str, list[LocalOverride]] = {}
        for override in LocalOverride.objects.filter(kind="queue"):
            overrides.setdefault(override.name, []).append(override)
        jobs = {"job_counts": job_counts(), "open_jobs": open_jobs_of_queues()}
        return {**super().get_serializer_context(), **jobs, "idle": idle_at_queues(), "overrides": overrides}

    @extend_schema(summary="Read a computing queue", responses={200: QueueShown, **refusals(404)})
    def retrieve(self, request: Request, name: str) -> Response:
        """One computing queue by its name."""
        queue = self.get_queryset().filter(name=name).first()
        if queue is None:
            raise Http404("There is no such queue.")
        return Response(self.get_serializer(queue).data)


@extend_schema(tags=["grid"])
@extend_schema_view(
    list=extend_schema(
        summary="List sites",
        description="In the order of their names, each with its storage endpoints and queues.",
        responses={200: SiteShown(many=True), **refusals(400)},
    )
)
class SitesView(mixins.ListModelMixin, viewsets.GenericViewSet[Site]):
    queryset: QuerySet[Site] = Site.objects.prefetch_related("storages", "queues")
    serializer_class = SiteShown
    pagination_class = ByName
    filterset_class = SiteFilter
    permissions = {"list": READ}


@extend_schema(tags=["grid"])
@extend_schema_view(
    list=extend_schema(
        summary="List feeds",
        description="In the order of their names: how old each is, and what is wrong with it.",
        responses={200: FeedShown(many=True), **refusals(400)},
    )
)
class FeedsView(mixins.ListModelMixin, viewsets.GenericViewSet[Feed]):
    queryset: QuerySet[Feed] = Feed.objects.defer("copy")
    serializer_class = FeedShown
    pagination_class = ByName
    permissions = {"list": READ}


@extend_schema(tags=["grid"])
class GridView(viewsets.GenericViewSet[Site]):
    queryset: QuerySet[Site] = Site.objects.none()
    permissions = {"retrieve": READ}

    @extend_schema(
        summary="Read the grid document",
        description="The grid as decisions see it at this moment, as one grid document (docs/reference/grid.md), which "
        "`manage.py decide` and `import_grid` read. Without jobs, users and remaining work, and without directories.",
        responses={200: OpenApiTypes.OBJECT, **refusals()},
    )
    def retrieve(self, request: Request) -> Response:
        """The whole grid; it is the same for all VOs."""
        return Response(document(for_everybody(load_snapshot())))
