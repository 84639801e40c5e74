"""Changes of tasks that live on: one REST route and one form of the pages for each row of the table of changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.guards import page_requires
from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.rest.openapi import refusals
from broker_site.foundation.rest.paging import one_of
from brokerage.ledger.task_changes import change_task
from workqueues.api.serializers import TaskShown
from workqueues.api.submission_schema import model_schema
from workqueues.api.tasks import visible_task
from workqueues.ledger.commands import check_right
from workqueues.ledger.task_changes import unusable
from workqueues.models import Task
from workqueues.rules.task.change_forms import values_of_form
from workqueues.rules.task.changes import Change


class ChangeShown(serializers.Serializer[Any]):
    """A task after a change, and what the change does."""

    detail = serializers.CharField(help_text="what happens now")
    before = serializers.DictField(help_text="what was")
    after = serializers.DictField(help_text="what is")
    task = TaskShown()


class TaskChange(APIView):
    """A change of a task. `change` belongs to the row that `rest_view` makes it for."""

    change: Change

    def post(self, request: Request, task_id: int) -> Response:
        """404, then 403, then 422, then 409: nobody learns of a task more than he may."""
        task, caller = visible_task(request, task_id), principal(request)
        check_right(caller, task, self.change.right)
        if not isinstance(request.data, Mapping):
            raise unusable([Problem("", "type", "expected an object")])
        asked, problems = self.change.read(request.data)
        if problems:
            raise unusable(problems)
        task, changed = change_task(caller, task, self.change, asked)
        shown = {"detail": changed.told, "before": changed.before, "after": changed.after, "task": task}
        return Response(ChangeShown(shown).data, status.HTTP_202_ACCEPTED)


def rest_view(change: Change) -> Callable[..., HttpResponseBase]:
    """The REST view of a change, with its permission and its part of the OpenAPI document."""
    members = {"change": change, "permissions": {"post": change.right.permission}}
    operation = extend_schema(
        tags=["tasks"],
        summary=change.title,
        description=change.does,
        request={"application/json": model_schema(change.asked)},
        responses={202: ChangeShown, **refusals(400, 404, 409, 422)},
    )
    name = "".join(part.capitalize() for part in change.name.split("-"))
    view: type[APIView] = extend_schema_view(post=operation)(type(f"Change{name}", (TaskChange,), members))
    return view.as_view()


def form_view(change: Change) -> Callable[..., HttpResponseBase]:
    """What a form of the pages posts to, with session and CSRF token."""

    @page_requires(change.right.permission)
    @require_POST
    def press(request: HttpRequest, task_id: int) -> HttpResponse:
        """Change the task and go back to its page, with a message."""
        caller = authenticate(request)
        task = one_of(Task.objects.filter(visible_vos(caller).q("vo")), task_id, "task")
        try:
            check_right(caller, task, change.right)
            asked, problems = change.read(values_of_form(change, {name: request.POST[name] for name in request.POST}))
            if problems:
                raise unusable(problems)
            _, changed = change_task(caller, task, change, asked)
        except Refused as refused:
            if refused.status == 403:
                raise PermissionDenied(refused.detail) from None
            messages.error(request, refused.detail)
        else:
            messages.success(request, changed.told)
        return HttpResponseRedirect(reverse("page-task", args=[task_id]))

    return press
