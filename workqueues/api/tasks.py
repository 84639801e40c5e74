"""`/api/v1/tasks/`: submit, list, read."""

from __future__ import annotations

from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import mixins, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle

from broker_site.foundation.access.jsonbody import TASK_BODY_LIMIT
from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.access.throttles import SubmitThrottle
from broker_site.foundation.rest.openapi import lists, refusals
from broker_site.foundation.rest.paging import NewestFirst, OldestFirst, one_of
from workqueues.api.filtering import TaskFilter
from workqueues.api.serializers import TaskMove, TaskShown, TaskSubmitted, TaskWhole
from workqueues.api.submission import submit_task
from workqueues.api.submission_schema import SUBMIT, parameters_schema
from workqueues.models import Dataset, Task, TaskChange
from workqueues.states import PREMERGED_TYPES

DATASETS = Prefetch("datasets", Dataset.objects.exclude(type__in=PREMERGED_TYPES).order_by("id"))
KEY = OpenApiParameter(
    "Idempotency-Key", str, OpenApiParameter.HEADER, description="names this submission; repeated, it gives the first task"
)


def visible_tasks(request: Request, permission: str = "task:read") -> QuerySet[Task]:
    """The tasks of the VOs in which the caller has the permission."""
    return Task.objects.filter(visible_vos(principal(request), permission).q("vo"))


def visible_task(request: Request, task_id: int, permission: str = "task:read") -> Task:
    """One of them; 404 for any other."""
    return one_of(visible_tasks(request, permission), task_id, "task")


@extend_schema(tags=["tasks"])
@lists("List tasks", "Newest first.", TaskShown)
class Tasks(mixins.ListModelMixin, viewsets.GenericViewSet[Task]):
    """Tasks of the VOs in which the caller has a role."""

    queryset = Task.objects.none()
    serializer_class = TaskShown
    pagination_class = NewestFirst
    filterset_class = TaskFilter
    body_limit = TASK_BODY_LIMIT
    permissions = {"list": "task:read", "retrieve": "task:read", "create": "task:submit"}

    def get_queryset(self) -> QuerySet[Task]:
        return visible_tasks(self.request)

    def get_throttles(self) -> list[BaseThrottle]:
        """Submissions are counted per credential."""
        return [SubmitThrottle()] if self.action == "create" else []

    @extend_schema(
        summary="Submit a task",
        description=SUBMIT,
        parameters=[KEY],
        request={"application/json": parameters_schema()},
        responses={
            201: TaskWhole,
            200: OpenApiResponse(
                TaskSubmitted,
                "The task that this key submitted before, or one of a unique name that had ended and is run again, or that runs "
                "and of which the jobs are retried.",
            ),
            **refusals(400, 415, 422, 429, 503),
        },
    )
    def create(self, request: Request) -> Response:
        """Register the task of the body."""
        if request.stream is None:
            raise Refused(400, "Malformed body", "There is no body; send a JSON object of task parameters.")
        done = submit_task(request.data, principal(request), request.headers.get("Idempotency-Key", ""))
        code = status.HTTP_201_CREATED if done.new else status.HTTP_200_OK
        where = request.build_absolute_uri(f"{request.path}{done.task.id}/")
        told = {"detail": done.told} if done.told else {}
        return Response({**TaskWhole(self._whole(done.task.id)).data, **told}, code, headers={"Location": where})

    @extend_schema(summary="Read a task", responses={200: TaskWhole, **refusals(404)})
    def retrieve(self, request: Request, task_id: int) -> Response:
        """The task with all its columns, its datasets and the parameters it was submitted with."""
        return Response(TaskWhole(self._whole(visible_task(request, task_id).id)).data)

    def _whole(self, task_id: int) -> Task:
        return Task.objects.select_related("params").prefetch_related(DATASETS, "input_writers").get(id=task_id)


@extend_schema(tags=["tasks"])
@lists("The history of a task", "Every move, oldest first: when, from, to, by whom, why.", TaskMove, 404)
class TaskHistory(mixins.ListModelMixin, viewsets.GenericViewSet[TaskChange]):
    """The moves of a task."""

    queryset = TaskChange.objects.none()
    serializer_class = TaskMove
    pagination_class = OldestFirst
    permissions = {"list": "task:read"}

    def get_queryset(self) -> QuerySet[TaskChange]:
        return TaskChange.objects.filter(task_id=visible_task(self.request, self.kwargs["task_id"]).id)
