"""Kill and retry of single jobs, kill of many: by REST, and the buttons of the pages."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.guards import page_requires
from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.rest.openapi import refusals
from broker_site.foundation.rest.paging import LARGEST_ID, one_of
from brokerage.ledger.job_commands import (
    KILL,
    MOST_AT_ONCE,
    RETRY,
    Killed,
    check_task,
    kill_all_of,
    kill_listed,
    retry_job,
    told_of_kills,
)
from brokerage.models import Job
from workqueues.api.serializers import CommandAsked
from workqueues.models import Task


class JobsAsked(CommandAsked):
    """Which jobs, and why."""

    jobs = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=LARGEST_ID),
        min_length=1,
        max_length=MOST_AT_ONCE,
        help_text="numbers of the jobs",
    )


class KilledShown(serializers.Serializer[Killed]):
    """What became of one job."""

    job = serializers.IntegerField()
    outcome = serializers.ChoiceField(
        ["cancelled", "asked", "refused"], help_text="asked: it ends with the next sign of life of its pilot"
    )
    why = serializers.CharField(help_text="why it was refused")


class KillsShown(serializers.Serializer[Any]):
    """What became of the jobs, and what happens now."""

    detail = serializers.CharField(help_text="what happens now")
    jobs = KilledShown(many=True)


class RetryShown(serializers.Serializer[Any]):
    """What a retry does."""

    detail = serializers.CharField(help_text="what happens now")
    files = serializers.IntegerField(help_text="inputs that have more tries")


def _answers(summary: str, description: str, shown: Any, body: Any = CommandAsked, name: str | None = None) -> Any:
    return extend_schema(
        tags=["jobs"],
        summary=summary,
        description=description,
        request=body,
        operation_id=name,
        responses={202: shown, **refusals(400, 404, 409, 422)},
    )


_TRY = "That is a try of its inputs; where they have tries left, the task makes another job of them."


class KillJob(APIView):
    permissions = {"post": KILL}

    @_answers(
        "Kill a job", f"A job that waits is cancelled at once, a pilot is told with its next sign of life. {_TRY}", KillsShown
    )
    def post(self, request: Request, job_id: int) -> Response:
        """404, then 403, then 422, then 409."""
        caller = principal(request)
        job, _ = _job(caller, job_id, KILL)
        (answer,) = answers = kill_listed(caller, [job.id], _comment(request))
        if answer.outcome == "refused":
            raise Refused(409, "The job stays", f"Job {job_id} is not killed: {answer.why}. A job is killed until it has ended.")
        return _kills(answers)


class KillJobs(APIView):
    permissions = {"post": KILL}

    @_answers(
        "Kill jobs",
        f"Each as if it was alone; the answer says for each what became of it. {_TRY}",
        KillsShown,
        JobsAsked,
        "jobs_kill_many",
    )
    def post(self, request: Request) -> Response:
        """422 for a body that is not understood."""
        body = JobsAsked(data=request.data)
        body.is_valid(raise_exception=True)
        return _kills(kill_listed(principal(request), body.validated_data["jobs"], body.validated_data["comment"]))


class KillJobsOfTask(APIView):
    permissions = {"post": KILL}

    @_answers("Kill all jobs of a task", f"At most {MOST_AT_ONCE} at once; the task itself goes on. {_TRY}", KillsShown)
    def post(self, request: Request, task_id: int) -> Response:
        """404, then 403."""
        caller = principal(request)
        task = _task(caller, task_id)
        check_task(caller, KILL, task)
        return _kills(kill_all_of(caller, task, _comment(request)))


class RetryJob(APIView):
    permissions = {"post": RETRY}

    @_answers(
        "Retry a job",
        "Inputs that were given up with it get five tries more, while its task lives; the task makes another job of them. 409 "
        "where none was given up.",
        RetryShown,
    )
    def post(self, request: Request, job_id: int) -> Response:
        """404, then 403, then 422, then 409."""
        caller = principal(request)
        job, task = _job(caller, job_id, RETRY)
        n = retry_job(caller, job, task, _comment(request))
        return Response(RetryShown({"detail": _told_of_retry(task, n), "files": n}).data, status.HTTP_202_ACCEPTED)


def _told_of_retry(task: Task, n: int) -> str:
    return f"{n} input{'' if n == 1 else 's'} {'has' if n == 1 else 'have'} more tries; task {task.id} makes another job."


def _comment(request: Request) -> str:
    body = CommandAsked(data=request.data)
    body.is_valid(raise_exception=True)
    return str(body.validated_data["comment"])


def _kills(answers: list[Killed]) -> Response:
    return Response(KillsShown({"detail": told_of_kills(answers), "jobs": answers}).data, status.HTTP_202_ACCEPTED)


def _task(caller: Principal, task_id: int) -> Task:
    return one_of(Task.objects.filter(visible_vos(caller).q("vo")), task_id, "task")


def _job(caller: Principal, job_id: int, permission: str) -> tuple[Job, Task]:
    """The job and its task; 404 where the caller cannot see it, 403 where he may not do this with it."""
    job = one_of(Job.objects.filter(visible_vos(caller, "job:read").q("spec__vo")), job_id, "job")
    task = _task(caller, job.task_id)
    check_task(caller, permission, task)
    return job, task


@page_requires(KILL)
@require_POST
def kill_button(request: HttpRequest, job_id: int) -> HttpResponse:
    """Kill the job and go back to its page."""
    caller = authenticate(request)
    try:
        job, _ = _job(caller, job_id, KILL)
    except Refused as refused:
        raise PermissionDenied(refused.detail) from None
    return _back(request, told_of_kills(kill_listed(caller, [job.id], _written(request))), reverse("page-job", args=[job_id]))


@page_requires(KILL)
@require_POST
def kill_all_button(request: HttpRequest, task_id: int) -> HttpResponse:
    """Kill the jobs of the task and go back to its page."""
    caller = authenticate(request)
    try:
        answers = kill_all_of(caller, _task(caller, task_id), _written(request))
    except Refused as refused:
        raise PermissionDenied(refused.detail) from None
    return _back(request, told_of_kills(answers), reverse("page-task", args=[task_id]))


@page_requires(RETRY)
@require_POST
def retry_button(request: HttpRequest, job_id: int) -> HttpResponse:
    """Retry the job and go back to its page."""
    caller = authenticate(request)
    try:
        job, task = _job(caller, job_id, RETRY)
        said = _told_of_retry(task, retry_job(caller, job, task, _written(request)))
    except Refused as refused:
        if refused.status == 403:
            raise PermissionDenied(refused.detail) from None
        messages.error(request, refused.detail)
        return HttpResponseRedirect(reverse("page-job", args=[job_id]))
    return _back(request, said, reverse("page-job", args=[job_id]))


def _written(request: HttpRequest) -> str:
    return request.POST.get("comment", "")[:200]


def _back(request: HttpRequest, said: str, address: str) -> HttpResponse:
    messages.success(request, said)
    return HttpResponseRedirect(address)
