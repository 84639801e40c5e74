"""`/api/v1/datasets/`, `/api/v1/files/`, and those of one task."""

from __future__ import annotations

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.rest import principal
from broker_site.foundation.rest.openapi import lists, refusals
from broker_site.foundation.rest.paging import NewestFirst, OldestFirst, one_of
from workqueues.api.filtering import DatasetFilter, FileFilter
from workqueues.api.serializers import DatasetShown, FileShown, FileWhole
from workqueues.api.tasks import visible_task
from workqueues.models import Dataset, File, FileChange

READ = "dataset:read"


@extend_schema(tags=["data"])
@lists("List datasets", "Inputs and outputs of tasks, newest first.", DatasetShown)
class Datasets(mixins.ListModelMixin, viewsets.GenericViewSet[Dataset]):
    """Datasets of the tasks that the caller may see."""

    queryset = Dataset.objects.none()
    serializer_class = DatasetShown
    pagination_class = NewestFirst
    filterset_class = DatasetFilter
    permissions = {"list": READ, "retrieve": READ}

    def get_queryset(self) -> QuerySet[Dataset]:
        return Dataset.objects.filter(visible_vos(principal(self.request), READ).q("vo"))

    @extend_schema(summary="Read a dataset", responses={200: DatasetShown, **refusals(404)})
    def retrieve(self, request: Request, dataset_id: int) -> Response:
        """One dataset with its counters."""
        return Response(DatasetShown(one_of(self.get_queryset(), dataset_id, "dataset")).data)


@extend_schema(tags=["data"])
@lists("The datasets of a task", "Inputs and outputs with their counters, masters first.", DatasetShown, 404)
class TaskDatasets(mixins.ListModelMixin, viewsets.GenericViewSet[Dataset]):
    """Datasets of one task."""

    queryset = Dataset.objects.none()
    serializer_class = DatasetShown
    pagination_class = OldestFirst
    filterset_class = DatasetFilter
    permissions = {"list": READ}

    def get_queryset(self) -> QuerySet[Dataset]:
        return Dataset.objects.filter(task_id=visible_task(self.request, self.kwargs["task_id"], READ).id)


@extend_schema(tags=["data"])
@lists("The files of a task", "Every file that the task uses or makes.", FileShown, 404)
class TaskFiles(mixins.ListModelMixin, viewsets.GenericViewSet[File]):
    """Files of one task."""

    queryset = File.objects.none()
    serializer_class = FileShown
    pagination_class = OldestFirst
    filterset_class = FileFilter
    permissions = {"list": READ}

    def get_queryset(self) -> QuerySet[File]:
        return File.objects.filter(task_id=visible_task(self.request, self.kwargs["task_id"], READ).id)


@extend_schema(tags=["data"])
@lists("List files", "Files that tasks use and make, newest first.", FileShown)
class Files(mixins.ListModelMixin, viewsets.GenericViewSet[File]):
    """Files of the tasks that the caller may see."""

    queryset = File.objects.none()
    serializer_class = FileShown
    pagination_class = NewestFirst
    filterset_class = FileFilter
    permissions = {"list": READ, "retrieve": READ}

    def get_queryset(self) -> QuerySet[File]:
        return File.objects.filter(visible_vos(principal(self.request), READ).q("task__vo"))

    @extend_schema(summary="Read a file", responses={200: FileWhole, **refusals(404)})
    def retrieve(self, request: Request, file_id: int) -> Response:
        """One file, with the moves that no job caused."""
        file = one_of(self.get_queryset().select_related("dataset"), file_id, "file")
        file.changes = FileChange.objects.filter(file_id=file.id).order_by("id")  # type: ignore[attr-defined]
        return Response(FileWhole(file).data)
