"""`/api/v1/transfers/`: files that are brought, one with its way, and why a file is not where it is wanted."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.rest.openapi import lists, refusals
from broker_site.foundation.rest.paging import NewestFirst, one_of
from brokerage.api.filtering import TransferFilter
from brokerage.models import StorageEndpoint, Transfer, TransferWish
from brokerage.queries.file_arrival import arrival_by, arrival_of
from brokerage.queries.transfer_parts import catalogue_file, copies_of_file, moves_of_transfer, transfers_in, wishes_of_transfer
from brokerage.rules.explain.file_arrival import sentence
from brokerage.rules.transfers.reasons import REASONS
from brokerage.states import TRANSFER

READ = "transfer:read"


class TransferShown(serializers.ModelSerializer[Transfer]):
    """A transfer as lists show it."""

    status = serializers.CharField(read_only=True, help_text=f"one of {', '.join(TRANSFER.states)}")
    reason = serializers.CharField(
        read_only=True, help_text=f"why the last attempt failed, or the transfer ended: {', '.join(REASONS)}; empty while neither"
    )
    lfn = serializers.CharField(source="file.lfn", read_only=True)
    dataset = serializers.CharField(source="file.dataset.name", read_only=True)

    class Meta:
        model = Transfer
        fields = (
            "id", "lfn", "dataset", "source", "source_site", "destination", "destination_site", "status", "status_since",
            "reason", "message", "activity", "express", "priority", "vo", "share", "tape", "bytes", "checksum", "attempt",
            "next_at", "failed_sources", "backend", "created_at", "ended_at",
        )  # fmt: skip
        read_only_fields = fields


class CopyShown(serializers.Serializer[Any]):
    """A copy of the file."""

    storage = serializers.CharField()
    state = serializers.CharField(help_text="available, deleting or bad")
    kind = serializers.CharField(help_text="origin: kept; cache: removed when nobody needs it")
    last_used = serializers.DateTimeField(allow_null=True)
    keep_until = serializers.DateTimeField(allow_null=True)


class WishShown(serializers.ModelSerializer[TransferWish]):
    """Who wants the file there."""

    class Meta:
        model = TransferWish
        fields = ("role", "job_id", "task_id", "vo", "owner", "created_at", "closed_at")
        read_only_fields = fields


class TransferMoveShown(serializers.Serializer[Any]):
    """One move of a transfer."""

    at = serializers.DateTimeField()
    old = serializers.CharField()
    new = serializers.CharField()
    attempt = serializers.IntegerField()
    who = serializers.CharField()
    why = serializers.CharField()


class TransferWhole(TransferShown):
    """A transfer with the sentence about it, the copies of its file, who wishes it (of the caller's VOs) and its moves."""

    why = serializers.CharField(read_only=True, help_text="why the file is not there yet, or that it is; as the page tells it")
    copies = CopyShown(many=True, read_only=True)
    wishes = WishShown(many=True, read_only=True, source="shown_wishes")
    history = TransferMoveShown(many=True, read_only=True)

    class Meta(TransferShown.Meta):
        fields = (*TransferShown.Meta.fields, "why", "copies", "wishes", "history")  # type: ignore[assignment]
        read_only_fields = fields  # type: ignore[assignment]


class ArrivalShown(serializers.Serializer[Any]):
    """Where a file is, and why it is not where it was asked for."""

    dataset = serializers.CharField()
    lfn = serializers.CharField()
    storage = serializers.CharField(help_text="where it was asked for; empty: wherever it goes")
    here = serializers.BooleanField(help_text="whether it is there")
    why = serializers.CharField(help_text="the sentence")
    copies = CopyShown(many=True)


@extend_schema(tags=["transfers"])
@lists("List transfers", "Files that are brought, or were in the last days, newest first.", TransferShown)
class Transfers(mixins.ListModelMixin, viewsets.GenericViewSet[Transfer]):
    """Transfers of the VOs in which the caller has a role. The list has those that they wished first."""

    queryset = Transfer.objects.none()
    serializer_class = TransferShown
    pagination_class = NewestFirst
    filterset_class = TransferFilter
    permissions = {"list": READ, "retrieve": READ}

    def get_queryset(self) -> QuerySet[Transfer]:
        return Transfer.objects.filter(visible_vos(principal(self.request), READ).q("vo")).select_related("file__dataset")

    @extend_schema(summary="Read a transfer", responses={200: TransferWhole, **refusals(404)})
    def retrieve(self, request: Request, transfer_id: int) -> Response:
        """The way of a file to one place."""
        scope = visible_vos(principal(request), READ)
        transfer = one_of(transfers_in(scope).select_related("file__dataset"), transfer_id, "transfer")
        arrival = arrival_by(transfer.file, transfer.destination, transfer)
        parts = {
            "why": sentence(arrival),
            "copies": copies_of_file(transfer.file_id),
            "shown_wishes": wishes_of_transfer(transfer.id, scope),
            "history": moves_of_transfer(transfer.id),
        }
        vars(transfer).update(parts)
        return Response(TransferWhole(transfer).data)


ASKED = {
    "dataset": "name of the dataset in the catalogue",
    "lfn": "name of the file in it",
    "storage": "storage endpoint where it is wanted; without it, wherever it goes",
    "vo": "whose dataset it is, where several of your VOs have one of that name",
}


NEEDED = ("dataset", "lfn")


class WhyNotHere(APIView):
    permissions = {"get": READ}

    @extend_schema(
        tags=["transfers"],
        summary="Why a file is not there yet",
        description="Where the file is, and in one sentence why it is not where it is wanted.",
        parameters=[
            *(OpenApiParameter(n, {"type": "string", "minLength": 1}, required=True, description=ASKED[n]) for n in NEEDED),
            *(OpenApiParameter(n, str, description=ASKED[n]) for n in ASKED if n not in NEEDED),
        ],
        responses={200: ArrivalShown, **refusals(400, 404)},
    )
    def get(self, request: Request) -> Response:
        """400 without the names of dataset and file, 404 where there is no such file or storage."""
        asked = {name: request.query_params.get(name, "") for name in ASKED}
        wrong = [Problem(name, "required", ASKED[name]) for name in NEEDED if not asked[name]]
        wrong += [
            Problem(name[:100], "unknown", f"there are: {', '.join(ASKED)}") for name in request.query_params if name not in ASKED
        ]
        if wrong:
            raise Refused(400, "Not valid", "; ".join(f"{p.field}: {p.rule}" for p in wrong), wrong)
        scope = visible_vos(principal(request), READ)
        file = catalogue_file(asked["dataset"], asked["lfn"], asked["vo"], scope)
        if file is None:
            raise Http404("There is no such file.")
        if asked["storage"] and not StorageEndpoint.objects.filter(name=asked["storage"]).exists():
            raise Http404("There is no such storage.")
        arrival = arrival_of(file, asked["storage"])
        answer = {
            "dataset": file.dataset.name,
            "lfn": file.lfn,
            "storage": asked["storage"],
            "here": arrival.here,
            "why": sentence(arrival),
            "copies": copies_of_file(file.id),
        }
        return Response(ArrivalShown(answer).data)
