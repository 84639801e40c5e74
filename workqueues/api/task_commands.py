"""Commands on tasks: one REST route and one button of the pages for each row of the table of commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.guards import page_requires
from broker_site.foundation.access.jsonbody import decode
from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.rest.openapi import refusals
from broker_site.foundation.rest.paging import one_of
from workqueues.api.serializers import CommandAsked, TaskCommanded
from workqueues.api.tasks import visible_task
from workqueues.ledger.commands import check_right, command_task
from workqueues.models import Task
from workqueues.rules.refine.changes import CHANGEABLE
from workqueues.rules.task.commands import Command
from workqueues.rules.task_parameters import not_yet


class TaskCommand(APIView):
    """A command on a task. `command` and `body` belong to the one that `rest_view` makes it for."""

    command: Command
    body: type[CommandAsked]

    def post(self, request: Request, task_id: int) -> Response:
        """404, then 403, then 422, then 409: nobody learns of a task more than he may."""
        task, caller = visible_task(request, task_id), principal(request)
        check_right(caller, task, self.command.right)
        body = self.body(data=request.data)
        body.is_valid(raise_exception=True)
        options = dict(body.validated_data)
        comment, changes = options.pop("comment"), options.pop("changes", None)
        done = command_task(caller, task, self.command, comment, options, changes)
        return Response(TaskCommanded(done.task, context={"told": done.told}).data, status.HTTP_202_ACCEPTED)


CHANGES = "parameters of the task with their new values; null takes one away"


def _of_changes(command: Command) -> list[str]:
    """What the interface's description says of the changes that a command takes."""
    names = ", ".join(f"`{name}`" for name in CHANGEABLE if name not in not_yet())
    text = (
        "With `changes` it goes on with other parameters, and its inputs are read again as by incexec. These may change: "
        f"{names}, and `dsForXXX`, further datasets for the stream XXX. Any other, or one that breaks a rule, is answered with "
        "422, and nothing changes."
    )
    return [text] if command.changeable else []


def rest_view(command: Command) -> Callable[..., HttpResponseBase]:
    """The REST view of a command, with its permission and its part of the OpenAPI document."""
    name = command.name.title().replace("_", "")
    body: Any = CommandAsked
    if command.options or command.changeable:
        fields: dict[str, Any] = {
            o.name: serializers.BooleanField(default=o.default, help_text=o.field_help) for o in command.options
        }
        if command.changeable:
            fields["changes"] = serializers.DictField(default=dict, help_text=CHANGES)
        body = type(f"{name}Asked", (CommandAsked,), {"__doc__": f"The body of {command.name}.", **fields})
    members = {"command": command, "body": body, "permissions": {"post": command.right.permission}}
    operation = extend_schema(
        tags=["tasks"],
        summary=command.title,
        description=" ".join([command.before, *(o.sentence for o in command.options), command.after, *_of_changes(command)]),
        request=body,
        responses={202: TaskCommanded, **refusals(400, 404, 409, 422)},
    )
    view: type[APIView] = extend_schema_view(post=operation)(type(f"{name}Task", (TaskCommand,), members))
    return view.as_view()


def _typed(text: str) -> dict[str, Any]:
    """The changes that somebody typed into the page. Refused(422) for what is no JSON object."""
    if not text.strip():
        return {}
    try:
        changes = decode(text.encode())
    except Refused as wrong:
        raise Refused(422, "Changes not readable", f"changes: {wrong.detail}") from None
    if not isinstance(changes, dict):
        message = 'changes: expected an object, as in {"nFilesPerJob": 5}'
        raise Refused(422, "Changes not readable", message)
    return changes


def button_view(command: Command) -> Callable[..., HttpResponseBase]:
    """What a button of the pages posts to, with session and CSRF token."""

    @page_requires(command.right.permission)
    @require_POST
    def press(request: HttpRequest, task_id: int) -> HttpResponse:
        """Give the command and go back to `next`, or to the task's page, with a message."""
        caller = authenticate(request)
        task = one_of(Task.objects.filter(visible_vos(caller).q("vo")), task_id, "task")
        options = {o.name: o.default != bool(request.POST.get(o.box)) for o in command.options}
        try:
            changes = _typed(request.POST.get("changes", "")) if command.changeable else {}
            done = command_task(caller, task, command, request.POST.get("comment", "")[:200], options, changes)
        except Refused as refused:
            if refused.status == 403:
                raise PermissionDenied(refused.detail) from None
            messages.error(request, refused.detail)
        else:
            messages.success(request, done.told)
        wanted: Any = request.POST.get("next", "")
        ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure())
        return HttpResponseRedirect(wanted if ours else f"/tasks/{task_id}/")

    return press
