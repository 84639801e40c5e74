"""`/api/v1/series/`: what jobs did over time, and how many were in which state."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.kernel import clock
from broker_site.foundation.rest.openapi import refusals
from brokerage.queries.series import series
from brokerage.rules.facts.series import BYS, KINDS, MOST_LINES, OTHERS, WHATS, read

READ = "job:read"


class LineShown(serializers.Serializer[Any]):
    """Numbers of one bucket after the other."""

    what = serializers.CharField(help_text=f"one of {', '.join(WHATS)}")
    of = serializers.CharField(
        help_text=f"for which one of `by`; empty: all, or those without one; {OTHERS}: those beyond the {MOST_LINES} largest"
    )
    points = serializers.ListField(
        child=serializers.IntegerField(), help_text="a number for each bucket; of a state, how many jobs were in it at its end"
    )


class SeriesShown(serializers.Serializer[Any]):
    """Lines over time, of buckets of one length; none is left out."""

    start = serializers.DateTimeField(help_text="when the first bucket begins")
    end = serializers.DateTimeField(help_text="when the last one ends, which is not over yet")
    step_s = serializers.IntegerField(help_text="length of a bucket, s")
    counted_at = serializers.DateTimeField(allow_null=True, help_text="what happened before is counted; null: nothing is yet")
    lines = LineShown(many=True)


_PARAMETERS = [
    OpenApiParameter(
        "what",
        str,
        description=f"names with commas between: {', '.join(WHATS)}; usual: started,finished,failed. What jobs did is counted"
        " when they did it (started: the first word of a pilot that the payload runs or has run); of states, how many were in it",
    ),
    OpenApiParameter("window", str, description="how far back: a number with m, h, d or w, such as 1h, 24h, 7d, 90d; usual: 24h"),
    OpenApiParameter(
        "step",
        str,
        enum=["1m", "5m", "1h", "1d"],
        description="length of a bucket; usual: 1m to 2 h, 5m to 2 days, 1h to 31 days, 1d beyond (days of UTC). 1m is kept for 2"
        " days, 5m for 14. A window has at most 2,200 steps, 1,500 with `by`",
    ),
    OpenApiParameter("by", str, enum=list(BYS), description="a line for each; error: by fingerprint, of failed and closed jobs"),
    OpenApiParameter("vo", str, description="only of this VO"),
    OpenApiParameter("queue", str, description="only at this computing queue"),
    OpenApiParameter("share", str, description="only of this share"),
    OpenApiParameter("kind", str, enum=list(KINDS), description="only of this kind"),
    OpenApiParameter("user", str, description="only of tasks of this user; not together with queue or kind"),
]


class SeriesView(APIView):
    permissions = {"get": READ}

    @extend_schema(
        tags=["jobs"],
        operation_id="series_retrieve",
        summary="Count jobs over time",
        description="What jobs of the caller's VOs did, and in which states they were, in buckets of one length.",
        parameters=_PARAMETERS,
        responses={200: SeriesShown, **refusals(400)},
    )
    def get(self, request: Request) -> Response:
        """400 for parameters that there are not, or that do not go together."""
        asked, wrong = read({name: str(value) for name, value in request.query_params.items()})
        if asked is None:
            raise Refused(400, "Not valid", "; ".join(f"{p.field}: {p.message}" for p in wrong), wrong)
        scope = visible_vos(principal(request), READ)
        found = series(asked, clock.now(), None if scope.everything else scope.names)
        return Response(SeriesShown(found).data)
