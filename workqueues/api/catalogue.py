"""`/api/v1/datasets/close/`: no more files come to a dataset of the catalogue."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.permissions import may, visible_vos
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.rest.openapi import refusals
from workqueues.api.serializers import StrictBody
from workqueues.ledger.open_inputs import StillWritten, close_dataset
from workqueues.models import CatalogueDataset

READ, CLOSE = "dataset:read", "dataset:close"


class DatasetNamed(StrictBody):
    """A dataset of the catalogue."""

    vo = serializers.CharField(max_length=32, help_text="whose dataset it is")
    name = serializers.CharField(max_length=255, help_text="its name in that VO")


class CatalogueDatasetShown(serializers.ModelSerializer[CatalogueDataset]):
    """What the catalogue says of a dataset."""

    class Meta:
        model = CatalogueDataset
        fields = ("vo", "name", "owner", "state")
        read_only_fields = fields


def named_dataset(caller: Principal, permission: str, vo: str, name: str) -> CatalogueDataset:
    """The dataset, if the caller has the permission for it. Refused: 404 where he may not even see it, 403."""
    dataset = CatalogueDataset.objects.filter(visible_vos(caller, READ).q("vo"), vo=vo, name=name.removeprefix(f"{vo}:")).first()
    if dataset is None:
        raise Refused(404, "Not found", f"The catalogue has no dataset {name[:255]} of VO {vo[:32]}.")
    if not may(caller, permission, dataset.vo, dataset.owner or None):
        detail = f"{caller.name} neither owns the dataset {dataset.name} nor is an operator of VO {dataset.vo}."
        raise Refused(403, "Not permitted", detail)
    return dataset


class CloseDataset(APIView):
    """Closes a dataset."""

    permissions = {"post": CLOSE}

    @extend_schema(
        tags=["data"],
        summary="Close a dataset",
        description="No more files come to it: tasks that use new files of it (runUntilClosed) end with those that it has. One "
        "that is closed stays so. Its owner may, and an operator of the VO; not while a task writes to it, whose end closes it.",
        request=DatasetNamed,
        responses={200: CatalogueDatasetShown, **refusals(400, 404, 409, 422)},
    )
    def post(self, request: Request) -> Response:
        """404 for a dataset that the caller may not see, 403 for one that is not his, 409 while a task writes to it."""
        body = DatasetNamed(data=request.data)
        body.is_valid(raise_exception=True)
        caller = principal(request)
        dataset = named_dataset(caller, CLOSE, **body.validated_data)
        try:
            closed = close_dataset(dataset.id, caller)
        except StillWritten as refused:
            raise Refused(409, "The dataset is still written", f"{str(refused)[0].upper()}{str(refused)[1:]}.") from None
        return Response(CatalogueDatasetShown(closed).data)
