""" "Look now" for a task, a queue and a share: by REST, and the buttons of the pages."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.guards import page_requires
from broker_site.foundation.access.permissions import may, visible_vos
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.rest.openapi import refusals
from broker_site.foundation.rest.paging import one_of
from brokerage.ledger.look_now import look_at_queue, look_at_share, look_at_task
from brokerage.models import ComputingQueue
from brokerage.rules.explain.look_now import told
from workqueues.models import GlobalShare, Task

TASK, QUEUE, SHARE = "task:look", "queue:look", "share:look"


class Looked(serializers.Serializer[Any]):
    """What is looked at now."""

    tasks = serializers.IntegerField(help_text="tasks that waited; of a queue or a share as many go on as there is room for")


def _answers(summary: str, description: str) -> Any:
    return extend_schema(
        tags=["brokerage"],
        summary=summary,
        description=f"{description} Nothing is changed but the time of the next look.",
        request=None,
        responses={202: Looked, **refusals(404, 422)},
    )


class LookAtTask(APIView):
    permissions = {"post": TASK}

    @_answers("Look at a task now", "A task that waits for a time, as a pending one does, is looked at now.")
    def post(self, request: Request, task_id: int) -> Response:
        """404, then 403."""
        caller = principal(request)
        return Response({"tasks": look_at_task(caller, _task(caller, task_id))}, status.HTTP_202_ACCEPTED)


class LookAtQueue(APIView):
    permissions = {"post": QUEUE}

    @_answers(
        "Look at what waits for a queue",
        "Tasks that found no place and may go to this queue are judged now: those of the VOs in which the caller is an operator.",
    )
    def post(self, request: Request, name: str) -> Response:
        """One computing queue by its name."""
        return Response({"tasks": _at_queue(principal(request), queue_named(name))}, status.HTTP_202_ACCEPTED)


class LookAtShare(APIView):
    permissions = {"post": SHARE}

    @_answers("Look at what waits in a share", "Tasks of this share that found no place are judged now.")
    def post(self, request: Request, name: str) -> Response:
        """404, then 403."""
        caller = principal(request)
        return Response({"tasks": look_at_share(caller, _share(caller, name))}, status.HTTP_202_ACCEPTED)


def _at_queue(caller: Principal, queue: ComputingQueue) -> int:
    return look_at_queue(caller, queue, visible_vos(caller, QUEUE))


def _task(caller: Principal, task_id: int) -> Task:
    task = one_of(Task.objects.filter(visible_vos(caller).q("vo")), task_id, "task")
    if not may(caller, TASK, task.vo, task.user_name, task.submitted_by):
        raise Refused(403, "Not permitted", f"{caller.name} is neither the owner of task {task.id} nor an operator of {task.vo}.")
    return task


def queue_named(name: str) -> ComputingQueue:
    """The computing queue of this name; 404 where there is none."""
    queue = ComputingQueue.objects.filter(name=name).first()
    if queue is None:
        raise Http404("There is no such queue.")
    return queue


def _share(caller: Principal, name: str) -> GlobalShare:
    share = GlobalShare.objects.filter(visible_vos(caller).q("vo"), name=name).first()
    if share is None:
        raise Http404("There is no such share.")
    if not may(caller, SHARE, share.vo):
        raise Refused(403, "Not permitted", f"{caller.name} is neither operator nor share-editor of {share.vo}.")
    return share


@page_requires(TASK)
@require_POST
def task_button(request: HttpRequest, task_id: int) -> HttpResponse:
    """Look at the task and go back to its page."""
    caller = authenticate(request)
    task = _permitted(_task, caller, task_id)
    return _back(request, look_at_task(caller, task), f"task {task_id}", reverse("page-task", args=[task_id]))


@page_requires(QUEUE)
@require_POST
def queue_button(request: HttpRequest, name: str) -> HttpResponse:
    """Look at what waits for the queue and go back to its page."""
    queue = queue_named(name)
    n = _at_queue(authenticate(request), queue)
    return _back(request, n, f"queue {queue.name}", reverse("page-queue", args=[queue.name]))


@page_requires(SHARE)
@require_POST
def share_button(request: HttpRequest, name: str) -> HttpResponse:
    """Look at what waits in the share and go back to the shares."""
    caller = authenticate(request)
    share = _permitted(_share, caller, name)
    return _back(request, look_at_share(caller, share), f"share {share.name}", reverse("page-shares"))


def _permitted(find: Any, caller: Principal, which: Any) -> Any:
    """What is found, a refusal as a page tells it."""
    try:
        return find(caller, which)
    except Refused as refused:
        raise PermissionDenied(refused.detail) from None


def _back(request: HttpRequest, n: int, target: str, address: str) -> HttpResponse:
    messages.success(request, told(target, n))
    return HttpResponseRedirect(address)
