"""`/api/v1/search/`: what a number or a part of a name finds, of all kinds."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.rest import principal
from broker_site.foundation.rest.filtering import take_only
from broker_site.foundation.rest.openapi import refusals
from monitoring.queries.search import MOST, SHORTEST, look_for

READ = "task:read"


class FindShown(serializers.Serializer[Any]):
    """Something that was found."""

    kind = serializers.CharField(help_text="task, job, dataset, file, queue or owner")
    name = serializers.CharField()
    status = serializers.CharField(source="state", allow_blank=True, help_text="empty: it has none")
    url = serializers.CharField(help_text="its page")


class FindsShown(serializers.Serializer[Any]):
    """What was found."""

    q = serializers.CharField(allow_blank=True)
    results = FindShown(many=True)
    whole = serializers.BooleanField(help_text="false: of some kind only the newest were looked at")


class SearchView(APIView):
    permissions = {"get": READ}

    @extend_schema(
        tags=["system"],
        operation_id="search_list",
        summary="Search everything",
        description=f"Tasks, jobs, datasets and files by number; queues, tasks, datasets and owners by a part of the name of "
        f"{SHORTEST} letters at least: up to {MOST} of each kind that you may see.",
        parameters=[OpenApiParameter("q", str, description="a number, or a part of a name")],
        responses={200: FindsShown, **refusals(400)},
    )
    def get(self, request: Request) -> Response:
        """As the page of the search."""
        text = take_only(request, ("q",))["q"]
        found = look_for(text, visible_vos(principal(request), READ))
        results = [
            {"kind": finds.kind, "name": one.name, "status": one.state, "url": request.build_absolute_uri(one.address)}
            for finds in found
            for one in finds.found
        ]
        return Response({"q": text, "results": results, "whole": not any(finds.partly for finds in found)})
