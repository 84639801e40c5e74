"""`/api/v1/tasks/`: submit, list, read, command."""

from __future__ import annotations

from typing import Any

import django_filters
from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle

from broker_site.access.jsonbody import TASK_BODY_LIMIT
from broker_site.access.permissions import may, visible_vos
from broker_site.access.problems import Refused
from broker_site.access.rest import principal
from broker_site.access.throttles import SubmitThrottle
from broker_site.kernel.machine import NotAllowed
from workqueues.api.paging import NewestFirst, OldestFirst
from workqueues.api.serializers import CommandAsked, DatasetShown, FileShown, FinishAsked, TaskMove, TaskShown, TaskWhole
from workqueues.api.submission import submit_task
from workqueues.ledger.commands import command
from workqueues.models import Dataset, File, Task, TaskChange
from workqueues.rules.task_parameters import not_yet
from workqueues.states import TASK

SUBMIT_DOC = (
    "The body is PanDA's task parameters (taskName, vo, prodSourceLabel, jobParameters, log, ...). Every problem of a body is "
    "answered at once: 422 with `errors: [{field, rule, message}]`. With `Idempotency-Key` a repeated submission answers 200 "
    "with the first task. Known parameters whose feature is not built yet are refused with their row: "
    + ", ".join(f"{name} ({row})" for name, row in sorted(not_yet().items()))
    + "."
)


class TaskFilter(django_filters.FilterSet):
    """Filters of the task list; names may have `*`."""

    status = django_filters.BaseInFilter(field_name="status", help_text="one state, or several separated by commas")
    task_name = django_filters.CharFilter(method="by_name", help_text="whole name, or the beginning of one followed by *")

    class Meta:
        model = Task
        fields = ("vo", "user_name", "prod_source_label", "processing_type", "task_type", "work_queue", "parent_tid", "campaign")

    def by_name(self, tasks: QuerySet[Task], name: str, value: str) -> QuerySet[Task]:
        """Exact, or by its beginning."""
        return tasks.filter(task_name__startswith=value[:-1]) if value.endswith("*") else tasks.filter(task_name=value)


class TaskViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Task]):
    """Tasks of the VOs in which the caller has a role."""

    queryset = Task.objects.none()
    serializer_class = TaskShown
    pagination_class = NewestFirst
    filterset_class = TaskFilter
    lookup_value_regex = r"\d{1,18}"
    body_limit = TASK_BODY_LIMIT
    permissions = {
        "list": "task:read",
        "retrieve": "task:read",
        "create": "task:submit",
        "datasets": "dataset:read",
        "files": "dataset:read",
        "history": "task:read",
        "kill": "task:command",
        "finish": "task:command",
        "retry": "task:command",
    }

    def get_queryset(self) -> QuerySet[Task]:
        """Only what the caller may see."""
        return Task.objects.filter(visible_vos(principal(self.request)).q("vo"))

    def get_throttles(self) -> list[BaseThrottle]:
        """Submissions are counted per credential."""
        return [SubmitThrottle()] if self.action == "create" else []

    @extend_schema(
        summary="Submit a task",
        description=SUBMIT_DOC,
        request=OpenApiTypes.OBJECT,
        parameters=[OpenApiParameter("Idempotency-Key", str, OpenApiParameter.HEADER, description="repeats give the first task")],
        responses={201: TaskWhole, 200: TaskWhole},
    )
    def create(self, request: Request) -> Response:
        """Register the task of the body."""
        task, new = submit_task(request.data, principal(request), request.headers.get("Idempotency-Key", ""))
        shown = TaskWhole(Task.objects.select_related("params").get(id=task.id)).data
        return Response(shown, status.HTTP_201_CREATED if new else status.HTTP_200_OK)

    @extend_schema(summary="One task", responses=TaskWhole)
    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The task with its datasets and parameters."""
        return Response(TaskWhole(self._task()).data)

    @extend_schema(summary="The datasets of a task", responses=DatasetShown(many=True), filters=False)
    @action(detail=True, filterset_class=None, pagination_class=None)
    def datasets(self, request: Request, pk: str) -> Response:
        """Inputs and outputs, with their counters."""
        return Response(DatasetShown(Dataset.objects.filter(task_id=self._task().id).order_by("id"), many=True).data)

    @extend_schema(
        summary="The files of a task",
        parameters=[OpenApiParameter(name, str) for name in ("dataset", "type", "status")],
        responses=FileShown(many=True),
        filters=False,
    )
    @action(detail=True, filterset_class=None, pagination_class=OldestFirst)
    def files(self, request: Request, pk: str) -> Response:
        """Files, filtered by dataset id, type and status."""
        files = File.objects.filter(task_id=self._task().id)
        asked = request.query_params
        if dataset := asked.get("dataset"):
            if not dataset.isdigit():
                raise Refused(400, "Wrong filter", "dataset must be the id of a dataset")
            files = files.filter(dataset_id=int(dataset))
        for name in ("type", "status"):
            if value := asked.get(name):
                files = files.filter(**{name: value})
        pages = OldestFirst()
        page = pages.paginate_queryset(files, request, view=self)
        return pages.get_paginated_response(FileShown(page or [], many=True).data)

    @extend_schema(summary="The moves of a task", responses=TaskMove(many=True), filters=False)
    @action(detail=True, filterset_class=None, pagination_class=None)
    def history(self, request: Request, pk: str) -> Response:
        """Every move, oldest first."""
        moves = TaskChange.objects.filter(task_id=self._task().id).order_by("epoch")
        return Response(TaskMove(moves, many=True).data)

    @extend_schema(summary="Kill a task", request=CommandAsked, responses={202: TaskShown})
    @action(detail=True, methods=["post"])
    def kill(self, request: Request, pk: str) -> Response:
        """End the task and all its jobs: aborted."""
        return self._command("kill", self._asked(CommandAsked)["comment"])

    @extend_schema(summary="Finish a task early", request=FinishAsked, responses={202: TaskShown})
    @action(detail=True, methods=["post"])
    def finish(self, request: Request, pk: str) -> Response:
        """Make no more jobs, and end with what is done; soft lets running jobs end."""
        asked = self._asked(FinishAsked)
        return self._command("finish", " ".join(filter(None, ["soft finish" if asked["soft"] else "", asked["comment"]])))

    @extend_schema(summary="Retry a task", request=CommandAsked, responses={202: TaskShown})
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: str) -> Response:
        """Give the inputs that were given up more tries."""
        return self._command("retry", self._asked(CommandAsked)["comment"])

    def _task(self) -> Task:
        """The task of the address; 404 for one that the caller may not see."""
        task = self.get_queryset().select_related("params").prefetch_related("datasets").filter(id=int(self.kwargs["pk"])).first()
        if task is None:
            raise Http404("There is no such task.")
        return task

    def _asked(self, form: type[CommandAsked | FinishAsked]) -> dict[str, Any]:
        asked = form(data=self.request.data or {})
        asked.is_valid(raise_exception=True)
        return dict(asked.validated_data)

    def _command(self, name: str, comment: str) -> Response:
        task, caller = self._task(), principal(self.request)
        if not may(caller, "task:command", task.vo, owner=task.user_name):
            raise Refused(
                403, "Not permitted", f"{caller.name} is neither the owner of task {task.id} nor an operator of {task.vo}."
            )
        try:
            task = command(task.id, name, f"user:{caller.name}", comment)
        except NotAllowed:
            accepting = ", ".join(TASK.accepting(name))
            detail = f"Task {task.id} is {task.status}; {name} is accepted in {accepting}."
            raise Refused(409, "The state forbids it", detail) from None
        return Response(TaskShown(task).data, status.HTTP_202_ACCEPTED)
