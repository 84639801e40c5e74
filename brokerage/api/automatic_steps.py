"""`/api/v1/tasks/<id>/steps/`: what the system did with a task by itself, by which rule."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from broker_site.foundation.rest.openapi import refusals
from brokerage.queries.automatic_steps import MOST, steps_of
from workqueues.api.tasks import visible_task
from workqueues.models import Task

READ = "task:read"


class StepShown(serializers.Serializer[Any]):
    """One step."""

    at = serializers.DateTimeField()
    kind = serializers.CharField(help_text="state, note, files or throttle")
    what = serializers.CharField(help_text="the new state, the rule, what was noted of files, or the cause")
    who = serializers.CharField(help_text="agent or job; empty: a cause that holds now")
    why = serializers.CharField(help_text="with its numbers")
    rule = serializers.CharField(help_text="the rule, in words")
    keys = serializers.ListField(child=serializers.CharField(), help_text="configuration keys that it depends on")
    before = serializers.DictField(help_text="columns of the task that it changed, as they were")
    after = serializers.DictField(help_text="and as they were then")


@extend_schema(tags=["tasks"])
class TaskSteps(viewsets.GenericViewSet[Task]):
    queryset = Task.objects.none()
    serializer_class = StepShown
    pagination_class = None
    permissions = {"retrieve": READ}

    @extend_schema(
        summary="What the system did with a task",
        description=f"The newest {MOST} steps that no person took, newest first: scouts, retries, boost, throttling, ends.",
        responses={200: StepShown(many=True), **refusals(404)},
    )
    def retrieve(self, request: Request, task_id: int) -> Response:
        """Each with its rule, numbers, keys and time."""
        return Response(StepShown(steps_of(visible_task(request, task_id, READ).id), many=True).data)
