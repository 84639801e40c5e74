"""`/api/v1/tasks/<id>/waiting/`: what a task waits for, in the words of the pages and of `explain`."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from broker_site.foundation.rest.openapi import refusals
from brokerage.queries.task_status import task_status
from workqueues.api.tasks import visible_task
from workqueues.models import Task
from workqueues.queries.needs_changes import needs_changes

READ = "decision:read"


class ReasonShown(serializers.Serializer[Any]):
    """One thing that the task waits for."""

    kind = serializers.CharField(help_text="reason, throttler, throttled, command, state, parent, files, elements, jobs or agent")
    message = serializers.CharField()
    task_id = serializers.IntegerField(allow_null=True, help_text="the task to look at, where it is another one")


class ErrorsShown(serializers.Serializer[Any]):
    """Jobs of the task that ended with one error code, among the newest ones that ended."""

    code = serializers.CharField()
    n_jobs = serializers.IntegerField()
    message = serializers.CharField(help_text="the commonest one: the line that tells")
    job_id = serializers.IntegerField(help_text="the newest of the jobs")
    n_not_retried = serializers.IntegerField(help_text="of how many of them the files are not tried again, by a retry rule")


class ThrottleShown(serializers.Serializer[Any]):
    """A cause for which the task is throttled."""

    cause = serializers.CharField(help_text="attempts, disk_transfers, tape_staging, user_cap, failing or busy_sites")
    why = serializers.CharField(help_text="the cause with its numbers")
    until = serializers.DateTimeField(allow_null=True, help_text="when it ends by itself; null: when what caused it is over")


class ElementAtChildShown(serializers.Serializer[Any]):
    """An element that a child broker has, and what it said of it last."""

    id = serializers.IntegerField()
    status = serializers.CharField()
    child = serializers.CharField()
    site = serializers.CharField(allow_blank=True)
    n_files = serializers.IntegerField()
    n_files_ended = serializers.IntegerField()
    sentence = serializers.CharField(allow_blank=True)
    decision = serializers.CharField(allow_blank=True, help_text="the child's last decision, in words")
    told_at = serializers.DateTimeField(allow_null=True)


class ParentElementShown(serializers.Serializer[Any]):
    """The element of the parent broker that the task does."""

    element_id = serializers.IntegerField(help_text="its number at the parent")
    try_nr = serializers.IntegerField()
    parent_task_id = serializers.IntegerField()
    parent = serializers.CharField(help_text="address of the parent")  # type: ignore[assignment]
    status = serializers.CharField()
    refused = serializers.CharField(allow_blank=True, help_text="why the parent gives it no more")
    told_at = serializers.DateTimeField(allow_null=True, help_text="when the parent last took a report of it")
    given_back = serializers.CharField(allow_blank=True, help_text="why this broker gives it back to the parent")


class TaskElementsShown(serializers.Serializer[Any]):
    """Parts of the task that child brokers pull."""

    counts = serializers.DictField(child=serializers.IntegerField(), help_text="state: elements")
    at_children = ElementAtChildShown(many=True, help_text="some of those that children have, those told of last first")
    of_parent = ParentElementShown(allow_null=True, help_text="null: the task is no part of one of a parent broker")


class NeedsChangeShown(serializers.Serializer[Any]):
    """Somebody changed what new jobs of the task need: decisions before and after rest on other needs."""

    at = serializers.DateTimeField()
    who = serializers.CharField()
    why = serializers.CharField(allow_blank=True)
    sentence = serializers.CharField(help_text="who changed what, from which value to which")


class TaskStatusShown(serializers.Serializer[Any]):
    """Where a task stands."""

    status = serializers.CharField()
    headline = serializers.CharField(help_text="the one line")
    next_look_at = serializers.DateTimeField(allow_null=True)
    next_look = serializers.CharField(allow_blank=True, help_text="that time in words; whether it is due now")
    throttles = ThrottleShown(many=True, help_text="why it is throttled; empty where no cause holds")
    reasons = ReasonShown(many=True, help_text="the most telling first; empty once it has ended")
    job_errors = ErrorsShown(many=True, help_text="with what its jobs ended that did not finish, the most frequent code first")
    elements = TaskElementsShown()
    needs_changes = NeedsChangeShown(many=True, help_text="by hand, the newest first")


@extend_schema(tags=["tasks"])
class TaskStatusView(viewsets.GenericViewSet[Task]):
    queryset = Task.objects.none()
    serializer_class = TaskStatusShown
    permissions = {"retrieve": READ}

    @extend_schema(summary="What a task waits for", responses={200: TaskStatusShown, **refusals(404)})
    def retrieve(self, request: Request, task_id: int) -> Response:
        """One line, and every reason, as the page of the task tells them."""
        told = task_status(visible_task(request, task_id, READ)).to_document()
        told["needs_changes"] = [change.to_document() for change in needs_changes(task_id)]
        return Response(TaskStatusShown(told).data)
