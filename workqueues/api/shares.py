"""`/api/v1/shares/` and `/api/v1/work-queues/`: the rows that change sets steer, and who wrote them last."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema, extend_schema_view, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.rest import principal
from broker_site.foundation.gdpconfig.changesets import Place, Standing, columns_of
from broker_site.foundation.gdpconfig.models import Revision
from broker_site.foundation.gdpconfig.row_lines import RowLines
from broker_site.foundation.gdpconfig.visible_lines import sees
from broker_site.foundation.rest.filtering import take_no_filter
from broker_site.foundation.rest.openapi import refusals
from workqueues.ledger.share_lines import ShareLines
from workqueues.ledger.work_queue_lines import WorkQueueLines

READ = "config:read"


class RowShown(serializers.Serializer[Any]):
    """A row as a line of a change names it, with its columns."""

    name = serializers.CharField(help_text="the key of a line that changes it")
    vo = serializers.CharField()
    revision = serializers.IntegerField(help_text="the change set that wrote it last; 0: none did")
    who = serializers.CharField(help_text="who wrote it last")
    until = serializers.DateTimeField(allow_null=True, help_text="when it ends by itself")


class ShareShown(RowShown):
    """A share."""

    # A field of that name has another meaning in the class that this one derives from.
    parent = serializers.CharField(help_text="empty: at the top")  # type: ignore[assignment]
    value = serializers.FloatField(help_text="weight among the shares beside it")
    position = serializers.IntegerField(help_text="order of matching and of ties; lower first")
    throttled = serializers.BooleanField()
    prod_source_label = serializers.CharField()
    working_group = serializers.CharField()
    campaign = serializers.CharField()
    processing_type = serializers.CharField()
    trans_path = serializers.CharField()


class WorkQueueShown(RowShown):
    """A work queue."""

    queue_order = serializers.IntegerField(help_text="lower ones are asked first")
    queue_share = serializers.IntegerField(allow_null=True, help_text="null: not throttled")
    criteria = serializers.CharField()
    variables = serializers.CharField()
    partition = serializers.CharField(help_text="the partition that it is in; empty: none")
    is_partition = serializers.BooleanField()
    stretchable = serializers.BooleanField()
    queue_function = serializers.CharField()
    status = serializers.CharField(help_text="active or inactive")


class SteeredRows(APIView):
    """The rows of one kind that change sets steer, all of them: they are few. `shown`: one of them."""

    permissions: ClassVar = {"get": READ}
    lines: ClassVar[RowLines]
    shown: ClassVar[type[RowShown]]

    def get(self, request: Request) -> Response:
        """Of the VOs that the caller sees, at the revision that they are read at."""
        take_no_filter(request)
        revision = Revision.objects.filter(id=1).values_list("number", flat=True).first() or 0  # before the rows: never too new
        scope = visible_vos(principal(request), READ)
        places = [place for place in self.lines.rows() if sees(scope, place.kind, place.vo)]
        rows = [_row(place, row) for place, row in self.lines.standing(places).items()]
        return Response({"revision": revision, "results": self.shown(rows, many=True).data})


def _told(what: str, operation: str, shown: type[RowShown], description: str) -> Any:
    """How the document of the interface tells of a list of rows."""
    fields = {
        "revision": serializers.IntegerField(help_text="last change set: the `base` of a change that rests on this"),
        "results": shown(many=True),
    }
    answer = inline_serializer(f"{shown.__name__.removesuffix('Shown')}sShown", fields)
    return extend_schema_view(
        get=extend_schema(
            tags=["configuration"],
            operation_id=operation,
            summary=f"List {what}",
            description=description,
            responses={200: answer, **refusals(400)},
        )
    )


@_told("shares", "share_list", ShareShown, "The share trees of your VOs. Change sets with lines of the kind `share` change them.")
class Shares(SteeredRows):
    lines, shown = ShareLines(), ShareShown


@_told(
    "work queues",
    "work_queue_list",
    WorkQueueShown,
    "The work queues of your VOs and of all. Change sets with lines of the kind `work_queue` change them.",
)
class WorkQueueRows(SteeredRows):
    lines, shown = WorkQueueLines(), WorkQueueShown


def _row(place: Place, row: Standing) -> dict[str, Any]:
    told = {"name": place.name, "vo": place.vo, "revision": row.revision, "who": row.who, "until": row.until}
    return {**told, **columns_of(row.text)}
