"""`/api/v1/datasets/close/` and `/api/v1/datasets/recover/`: no more files come to a dataset of the catalogue; lost
files of it are made again.
"""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.permissions import may, visible_vos
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.rest.openapi import refusals
from workqueues.api.serializers import StrictBody, TaskShown
from workqueues.catalogue import CatalogueUnavailable
from workqueues.catalogue.lost_files import StillThere, check_lost_files
from workqueues.ledger.open_inputs import StillWritten, close_dataset
from workqueues.ledger.recovery import MOST_FILES, CannotRecover, recover
from workqueues.models import CatalogueDataset
from workqueues.rules.refine import DatasetKey

READ, CLOSE, RECOVER = "dataset:read", "dataset:close", "dataset:recover"


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


class LostFiles(DatasetNamed):
    """Files of a dataset that are lost."""

    files = serializers.ListField(
        child=serializers.CharField(max_length=256), min_length=1, max_length=MOST_FILES, help_text="their names, without a scope"
    )
    comment = serializers.CharField(max_length=200, default="", allow_blank=True, help_text="why; stands in their history")
    force = serializers.BooleanField(default=False, help_text="also where a copy of a file is intact, which nobody reads then")


class RecoverFiles(APIView):
    """Makes lost files again."""

    permissions = {"post": RECOVER}

    @extend_schema(
        tags=["data"],
        summary="Make lost files again",
        description="A new task of what made them gives the same files under the same names; inputs of theirs that are gone too "
        "are made before, by tasks of their own. Until then the files are no files of the dataset. The dataset's owner may, and "
        "an operator of the VO.",
        request=LostFiles,
        responses={201: TaskShown(many=True), **refusals(400, 404, 409, 422, 503)},
    )
    def post(self, request: Request) -> Response:
        """404 and 403 as for closing, 409 with the first file that cannot be made again, or that is not lost."""
        body = LostFiles(data=request.data)
        body.is_valid(raise_exception=True)
        asked, caller = body.validated_data, principal(request)
        dataset = named_dataset(caller, RECOVER, asked["vo"], asked["name"])
        key = DatasetKey(dataset.vo, dataset.name)
        try:
            if not asked["force"]:
                check_lost_files(key, asked["files"])
            tasks = recover(key, asked["files"], caller, asked["comment"])
        except (CannotRecover, StillThere) as refused:
            detail = f"{str(refused)[0].upper()}{str(refused)[1:]}."
            raise Refused(409, "The files are not made again", detail) from None
        except CatalogueUnavailable as error:
            raise Refused(503, "Catalogue not available", str(error), headers={"Retry-After": "10"}) from error
        return Response(TaskShown(tasks, many=True).data, status.HTTP_201_CREATED)
