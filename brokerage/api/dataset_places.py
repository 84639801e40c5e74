"""`/api/v1/tasks/<id>/places/`: how far the datasets of a task are where they are wanted."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from broker_site.foundation.rest.openapi import refusals
from brokerage.queries.dataset_places import dataset_places
from workqueues.api.tasks import visible_task
from workqueues.models import Dataset
from workqueues.states import OUTPUT_TYPES

READ = "dataset:read"


class PlaceShown(serializers.Serializer[Any]):
    """A storage endpoint where a dataset is wanted."""

    dataset_id = serializers.IntegerField()
    dataset_name = serializers.CharField()
    storage = serializers.CharField(help_text="storage endpoint")
    role = serializers.CharField(
        help_text="nucleus: outputs are collected there; destination: wanted there at the end of the task"
    )
    files = serializers.IntegerField(help_text="files of the dataset, those on their way to it included")
    there = serializers.IntegerField(help_text="those that are there")
    on_the_way = serializers.IntegerField(help_text="those that are being brought")
    failed = serializers.IntegerField(help_text="those that were tried in vain")
    complete = serializers.BooleanField(help_text="whether every file that the dataset has now is there")


@extend_schema(tags=["data"])
class TaskPlacesView(viewsets.GenericViewSet[Dataset]):
    queryset = Dataset.objects.none()
    serializer_class = PlaceShown
    pagination_class = None
    permissions = {"retrieve": READ}

    @extend_schema(summary="Where its datasets are wanted", responses={200: PlaceShown(many=True), **refusals(404)})
    def retrieve(self, request: Request, task_id: int) -> Response:
        """The outputs and logs of a task at its nucleus and at their destinations; those that stay have no row."""
        task = visible_task(request, task_id, READ)
        names = dict(Dataset.objects.filter(task_id=task.id, type__in=OUTPUT_TYPES).values_list("id", "dataset_name"))
        rows = [
            {"dataset_id": id_, "dataset_name": names[id_], **place._asdict(), "complete": place.complete}
            for id_, places in dataset_places(names).items()
            for place in places
        ]
        return Response(PlaceShown(rows, many=True).data)
