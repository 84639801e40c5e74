"""`/api/v1/queues/<name>/overrides/`: attributes of a queue that operators set by hand over documents and feeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.rest.openapi import refusals
from brokerage.api.look_now import queue_named
from brokerage.api.serializers import OverrideShown
from brokerage.ledger.grid_overrides import change_overrides
from brokerage.models import LocalOverride
from brokerage.rules.grid.attributes import BadGrid, in_a_line
from brokerage.rules.grid.overrides import read_override
from workqueues.api.serializers import StrictBody

READ, EDIT = "grid:read", "config:edit"
LONGEST_VALUE, LONGEST_REASON = 10_000, 255


@extend_schema_field(
    {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"type": "string", "maxLength": LONGEST_VALUE, "nullable": True},
    }
)
class ValuesField(serializers.DictField):
    """Attributes with their values as text; null takes one away."""


class OverridesAsked(StrictBody):
    """What is to hold, whatever the document says, and what no longer."""

    attributes = ValuesField(
        child=serializers.CharField(allow_blank=True, allow_null=True, trim_whitespace=False, max_length=LONGEST_VALUE),
        allow_empty=False,
        help_text="attribute of the grid document: its value as text, objects and lists as JSON, empty for the default; null: "
        "the override is taken away, and what the document says holds again",
    )
    reason = serializers.CharField(max_length=LONGEST_REASON, help_text="why; told wherever the override is")
    until = serializers.DateTimeField(
        allow_null=True, default=None, help_text="when those that are set end by themselves; null: when they are taken away"
    )

    def validate_until(self, value: Any) -> Any:
        """A time that is yet to come, or none."""
        if value is not None and value <= clock.now():
            raise serializers.ValidationError("a time that is yet to come, or null", "range")
        return value


class OverridesShown(serializers.Serializer[Any]):
    """All overrides of the queue."""

    results = OverrideShown(many=True)


class QueueOverrides(APIView):
    permissions = {"get": READ, "post": EDIT}

    @extend_schema(tags=["grid"], summary="List the overrides of a queue", responses={200: OverridesShown, **refusals(404)})
    def get(self, request: Request, name: str) -> Response:
        """Those that hold now, by the names of the attributes."""
        return _told(queue_named(name).name)

    @extend_schema(
        tags=["grid"],
        summary="Set attributes of a queue by hand",
        description="All of them or, where one cannot be, none. They hold at once, over every document and feed. What is not "
        "named stays; what is so already is left as it is.",
        request=OverridesAsked,
        responses={200: OverridesShown, **refusals(400, 404, 422)},
    )
    def post(self, request: Request, name: str) -> Response:
        """404, then 422."""
        queue = queue_named(name)
        body = OverridesAsked(data=request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        if faults := list(_faults(queue.name, asked["attributes"])):
            raise Refused(422, "Not valid", "; ".join(f"{p.field}: {p.message}" for p in faults), faults)
        try:
            change_overrides(
                principal(request), "queue", queue.name, asked["attributes"], reason=asked["reason"], until=asked["until"]
            )
        except LookupError:
            raise Http404("There is no such queue.") from None
        return _told(queue.name)


def _told(queue: str) -> Response:
    found = LocalOverride.objects.filter(kind="queue", name=queue).order_by("attribute")
    return Response(OverridesShown({"results": found}).data)


def _faults(queue: str, values: Mapping[str, str | None]) -> Iterator[Problem]:
    """Attributes that there are not, unless an override of one is taken away, and values of another type or range."""
    there = set(LocalOverride.objects.filter(kind="queue", name=queue).values_list("attribute", flat=True))
    for attribute, value in values.items():
        if value is None and attribute in there:
            continue
        try:
            read_override("queue", attribute, value or "")
        except BadGrid as bad:
            told = [p for p in bad.problems if value is not None or p.rule == "unknown"]
            yield from (Problem(f"attributes.{attribute[:100]}", p.rule, in_a_line(p)) for p in told)
