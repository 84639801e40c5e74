"""Broker anew what waits at a queue, the jobs of a task that wait, or one job: by REST, and the buttons of the pages."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
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
from brokerage.api.look_now import queue_named
from brokerage.ledger.rebrokering import Rebrokered, rebroker_at_queue, rebroker_job, rebroker_task
from brokerage.models import ComputingQueue, Job
from brokerage.rules.explain.rebrokering import told
from workqueues.models import Task

REBROKER = "job:rebroker"


class RebrokeredShown(serializers.Serializer[Rebrokered]):
    """What became of the jobs that wait."""

    jobs = serializers.IntegerField(help_text="jobs that were closed: their files are brokered anew")
    stay = serializers.IntegerField(help_text="jobs that wait where they are")
    why = serializers.CharField(help_text="why the first of these stays; empty where none does")


def _answers(summary: str, description: str) -> Any:
    return extend_schema(
        tags=["brokerage"],
        summary=summary,
        description=f"{description} Jobs stay whose task names the queue or has disableReassign, and at a queue that is paused "
        "or has it.",
        request=None,
        responses={200: RebrokeredShown, **refusals(404, 409, 422)},
    )


class RebrokerAtQueue(APIView):
    permissions = {"post": REBROKER}

    @_answers("Broker anew what waits at a queue", "Closes the waiting jobs of the VOs in which the caller is an operator.")
    def post(self, request: Request, name: str) -> Response:
        """One computing queue by its name."""
        return _shown(_at_queue(principal(request), queue_named(name)))


class RebrokerTask(APIView):
    permissions = {"post": REBROKER}

    @_answers("Broker the waiting jobs of a task anew", "Closes the jobs of the task that no pilot has.")
    def post(self, request: Request, task_id: int) -> Response:
        """404, then 403."""
        caller = principal(request)
        return _shown(rebroker_task(caller, _task(caller, task_id)))


class RebrokerJob(APIView):
    permissions = {"post": REBROKER}

    @_answers("Broker a waiting job anew", "Closes the job; 409 where it does not wait or is to stay.")
    def post(self, request: Request, job_id: int) -> Response:
        """404, then 403, then 409."""
        caller = principal(request)
        job, vo = _job(caller, job_id)
        done = rebroker_job(caller, job, vo)
        if not done.jobs:
            raise Refused(409, "The job stays", f"Job {job_id} stays where it is: {done.why}.")
        return _shown(done)


def _shown(done: Rebrokered) -> Response:
    return Response(RebrokeredShown(done).data)


def _at_queue(caller: Principal, queue: ComputingQueue) -> Rebrokered:
    return rebroker_at_queue(caller, queue, visible_vos(caller, REBROKER))


def _task(caller: Principal, task_id: int) -> Task:
    task = one_of(Task.objects.filter(visible_vos(caller).q("vo")), task_id, "task")
    _check(caller, task.vo)
    return task


def _job(caller: Principal, job_id: int) -> tuple[Job, str]:
    """The job and its VO."""
    jobs = Job.objects.filter(visible_vos(caller, "job:read").q("spec__vo")).select_related("spec")
    job = one_of(jobs, job_id, "job")
    vo = job.spec.vo
    _check(caller, vo)
    return job, vo


def _check(caller: Principal, vo: str) -> None:
    if not may(caller, REBROKER, vo):
        raise Refused(403, "Not permitted", f"{caller.name} is no operator of {vo}.")


@page_requires(REBROKER)
@require_POST
def queue_button(request: HttpRequest, name: str) -> HttpResponse:
    """Broker anew what waits at the queue and go back to its page."""
    queue = queue_named(name)
    return _back(request, _at_queue(authenticate(request), queue), f"queue {name}", reverse("page-queue", args=[name]))


@page_requires(REBROKER)
@require_POST
def task_button(request: HttpRequest, task_id: int) -> HttpResponse:
    """Broker the waiting jobs of the task anew and go back to its page."""
    caller = authenticate(request)
    try:
        task = _task(caller, task_id)
    except Refused as refused:
        raise PermissionDenied(refused.detail) from None
    return _back(request, rebroker_task(caller, task), f"task {task_id}", reverse("page-task", args=[task_id]))


@page_requires(REBROKER)
@require_POST
def job_button(request: HttpRequest, job_id: int) -> HttpResponse:
    """Broker the job anew and go back to its page."""
    caller = authenticate(request)
    try:
        job, vo = _job(caller, job_id)
    except Refused as refused:
        raise PermissionDenied(refused.detail) from None
    done = rebroker_job(caller, job, vo)
    return _back(request, done, f"task {job.task_id}", reverse("page-job", args=[job_id]))


def _back(request: HttpRequest, done: Rebrokered, target: str, address: str) -> HttpResponse:
    messages.success(request, told(target, *done))
    return HttpResponseRedirect(address)
