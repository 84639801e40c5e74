"""`/api/v1/tasks/check/`: what a submission would do, with all that is wrong with it. Nothing of it is kept.

It is done as the real one (`submission`), in a transaction that is taken back, so that both say the same.
"""

from __future__ import annotations

import secrets
from typing import Any

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.jsonbody import TASK_BODY_LIMIT
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.access.throttles import CheckThrottle
from broker_site.foundation.rest.openapi import refusals
from workqueues.api.serializers import TaskWhole
from workqueues.api.submission import submit_task
from workqueues.api.submission_schema import parameters_schema
from workqueues.models import Task


class TaskChecked(serializers.Serializer[Any]):
    """What a submission would do."""

    detail = serializers.CharField(help_text="what would happen, in a sentence")
    again = serializers.IntegerField(allow_null=True, help_text="the task that would be run again for it; null: a new one")
    task_name = serializers.CharField()
    user_name = serializers.CharField(help_text="who would own it")
    vo = serializers.CharField()
    current_priority = serializers.IntegerField(help_text="before a share or group changes it")
    parents = serializers.ListField(child=serializers.IntegerField(), help_text="the tasks that it would wait for")
    notes = serializers.ListField(
        child=serializers.CharField(), help_text="what follows from the parameters, or has no effect yet"
    )


def check_task(params: Any, caller: Principal) -> dict[str, Any]:
    """Raises Refused as the submission does."""
    number = -1 - secrets.randbelow(2**62)  # a sequence gives no number twice, also where what took it is taken back
    with transaction.atomic():
        done = submit_task(params, caller, "", number=number)
        task = Task.objects.select_related("params").prefetch_related("input_writers", "datasets").get(id=done.task.id)
        whole = TaskWhole(task).data
        transaction.set_rollback(True)
    number = task.id
    told = f"task {number} of this name would be run again: {done.told}" if done.told else "nothing is wrong with it"
    names = ("task_name", "user_name", "vo", "current_priority", "notes")
    parents = [each for each in whole["parents"] if each != number]
    return {"detail": told, "again": None if done.new else number, "parents": parents, **{name: whole[name] for name in names}}


class CheckTask(APIView):
    """A trial of a submission."""

    body_limit = TASK_BODY_LIMIT
    permissions = {"post": "task:submit"}
    throttle_classes = (CheckThrottle,)

    @extend_schema(
        tags=["tasks"],
        operation_id="tasks_check",
        summary="Check a task before it is submitted",
        description="Takes what a submission takes and refuses what that would refuse, at this moment. Nothing is kept.",
        request={"application/json": parameters_schema()},
        responses={200: TaskChecked, **refusals(400, 415, 422, 429, 503)},
    )
    def post(self, request: Request) -> Response:
        """What would happen."""
        if request.stream is None:
            raise Refused(400, "Malformed body", "There is no body; send a JSON object of task parameters.")
        return Response(TaskChecked(check_task(request.data, principal(request))).data)
