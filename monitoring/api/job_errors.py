"""`/api/v1/errors/`: with which errors jobs end, each once."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import principal
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.rest.openapi import refusals
from brokerage.api.filtering import ErrorFilter
from brokerage.rules.facts.rollups import MOST_ERROR_TASKS
from monitoring.queries.job_errors import MOST_ERRORS, chosen, error_groups, job_errors, together
from monitoring.queries.series import USUAL_WINDOW, WINDOWS
from monitoring.tables.selection import faults_of, read

READ = "job:read"


class QueueErrors(serializers.Serializer[Any]):
    """Jobs of one queue that ended with an error."""

    queue = serializers.CharField(allow_blank=True, help_text="empty: they had none")
    jobs = serializers.IntegerField()

    def to_representation(self, instance: tuple[str, int]) -> dict[str, Any]:
        queue, jobs = instance
        return {"queue": queue, "jobs": jobs}


class OwnerErrors(serializers.Serializer[Any]):
    """Jobs of the tasks of one owner that ended with an error."""

    user_name = serializers.CharField(allow_blank=True, help_text="empty: they had no task")
    jobs = serializers.IntegerField()

    def to_representation(self, instance: tuple[str, int]) -> dict[str, Any]:
        user_name, jobs = instance
        return {"user_name": user_name, "jobs": jobs}


class FollowedRule(serializers.Serializer[Any]):
    """What a retry rule did when a job failed so."""

    rule = serializers.CharField()
    told = serializers.CharField(help_text="what followed, in words")


class JobErrorShown(serializers.Serializer[Any]):
    """One error: messages that differ in numbers, paths and quoted names only are one."""

    id = serializers.CharField(help_text="the fingerprint; `/api/v1/series/?by=error` names errors so")
    component = serializers.CharField(help_text="who says so: pilot, payload or broker")
    code = serializers.CharField(allow_blank=True)
    exit_code = serializers.IntegerField(help_text="of the payload; 0: it had none")
    message = serializers.CharField(allow_blank=True, help_text="* stands for what differs")
    jobs = serializers.IntegerField(help_text="jobs that ended so in the window")
    queues = QueueErrors(many=True, help_text="where most of them were; none with a filter by owner")
    n_queues = serializers.IntegerField(help_text="at how many queues")
    users = OwnerErrors(many=True, help_text="whose most of them were; none with a filter by queue")
    n_users = serializers.IntegerField(help_text="of how many owners")
    n_tasks = serializers.IntegerField(
        allow_null=True, help_text=f"of how many tasks, {MOST_ERROR_TASKS} at most; null with a filter by queue"
    )
    more_tasks = serializers.BooleanField(help_text="there are more tasks, or they were not noted yet when the window began")
    first_seen = serializers.DateTimeField()
    last_seen = serializers.DateTimeField(help_text="to the step of the window")
    job_id = serializers.IntegerField(allow_null=True, help_text="one of them; null where you may not see it")
    points = serializers.ListField(child=serializers.IntegerField(), help_text="jobs in each step of the window")
    helps = serializers.CharField(allow_blank=True, help_text="what is known to help; empty for a code that is not ours")
    followed = FollowedRule(many=True, help_text="what retry rules did when that job failed")


class JobErrorsShown(serializers.Serializer[Any]):
    """The errors of a window, the most frequent first."""

    window = serializers.CharField()
    counted_at = serializers.DateTimeField(allow_null=True, help_text="what happened before is counted; null: nothing is yet")
    others = serializers.IntegerField(help_text="jobs that ended with rarer errors")
    results = JobErrorShown(many=True)


class JobErrorsView(APIView):
    permissions = {"get": READ}

    @extend_schema(
        tags=["jobs"],
        operation_id="errors_list",
        summary="Errors with which jobs ended",
        description=f"The {MOST_ERRORS} errors with which most jobs of the caller's VOs failed or were closed.",
        parameters=[
            OpenApiParameter("window", str, enum=list(WINDOWS), description=f"how far back; usual: {USUAL_WINDOW}"),
            *(
                OpenApiParameter(name, str, description=declared.extra.get("help_text", ""))
                for name, declared in ErrorFilter.base_filters.items()
            ),
        ],
        responses={200: JobErrorsShown, **refusals(400)},
    )
    def get(self, request: Request) -> Response:
        """400 for a window that there is not, or a filter that says nothing."""
        selection = read(request.query_params, ErrorFilter, paged=False, also=("window",))
        scope = visible_vos(principal(request), READ)
        filters = ErrorFilter(selection.parameters, queryset=error_groups(scope))
        faults = {**faults_of(selection, filters), **together(selection)}
        wrong = [Problem(name, fault.rule, fault.message) for name, fault in faults.items()]
        wrong += selection.unknown
        window = request.query_params.get("window") or USUAL_WINDOW
        if window not in WINDOWS:
            wrong.append(Problem("window", "one_of", f"one of {', '.join(WINDOWS)}"))
        if wrong:
            raise Refused(400, "Not valid", "; ".join(f"{p.field}: {p.message}" for p in wrong), wrong)
        found = job_errors(scope, window, of=chosen(filters.qs, selection))
        body = {"window": window, "counted_at": found.counted_at, "others": found.others, "results": found.rows}
        return Response(JobErrorsShown(body).data)
