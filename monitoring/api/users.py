"""`/api/v1/users/`: whose jobs wait, run and ended, and one owner with what needs attention."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.rest import principal
from broker_site.foundation.kernel import clock
from broker_site.foundation.rest.filtering import take_no_filter, take_only
from broker_site.foundation.rest.openapi import refusals
from monitoring.queries.my_work import LATELY, MOST, MyWork, my_work
from monitoring.queries.share_history import shares_below
from monitoring.queries.tasks import visible_tasks
from monitoring.queries.users import MOST_LISTED, user_rows
from workqueues.states import TASK

READ, OWN = "job:read", "task:read"
FILTERS = ("q", "share")


class UserShown(serializers.Serializer[Any]):
    """An owner of tasks with the jobs of these."""

    user_name = serializers.CharField()
    shares = serializers.ListField(child=serializers.CharField(), help_text="shares of these jobs")
    waiting = serializers.IntegerField(help_text="jobs that no pilot has")
    running = serializers.IntegerField(help_text="jobs that a pilot has")
    ending = serializers.IntegerField(help_text="jobs whose outputs are under way")
    finished = serializers.IntegerField(help_text="in the whole hours of the last day")
    failed = serializers.IntegerField(help_text="in the whole hours of the last day")


class UsersShown(serializers.Serializer[Any]):
    """Owners, those with most jobs first."""

    count = serializers.IntegerField(source="n", help_text="how many there are")
    counted_at = serializers.DateTimeField(allow_null=True, help_text="when jobs were counted last; null: not yet")
    results = UserShown(source="rows", many=True)


class WorkTask(serializers.Serializer[Any]):
    """A task as the page of its owner shows it."""

    id = serializers.IntegerField()
    task_name = serializers.CharField()
    user_name = serializers.CharField()
    vo = serializers.CharField()
    status = serializers.ChoiceField(list(TASK.states))
    progress = serializers.IntegerField(help_text="percent of input files finished")
    files_finished = serializers.IntegerField()
    files_failed = serializers.IntegerField()
    files_in_jobs = serializers.IntegerField()
    files_left = serializers.IntegerField()
    files_lost = serializers.IntegerField()
    jobs_waiting = serializers.IntegerField(allow_null=True, help_text="null: too many jobs live to count them")
    jobs_running = serializers.IntegerField(allow_null=True, help_text="null: too many jobs live to count them")
    current_priority = serializers.IntegerField()
    creation_date = serializers.DateTimeField()
    status_since = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    error_dialog = serializers.CharField(allow_blank=True, help_text="why it is where it is")


class TaskInNeed(WorkTask):
    """A task that needs its owner."""

    attention = serializers.CharField(help_text="why it needs attention")


class WorkShown(serializers.Serializer[Any]):
    """The tasks of one owner."""

    user_name = serializers.CharField()
    needs_attention = TaskInNeed(many=True)
    live = WorkTask(many=True, help_text=f"the newest {MOST}")
    ended = WorkTask(many=True, help_text=f"the newest {MOST} that ended in the last {LATELY.days} days")
    more = serializers.BooleanField(help_text="whether there are more live ones than are told")


class UsersView(APIView):
    permissions = {"get": READ}

    @extend_schema(
        tags=["tasks"],
        operation_id="users_list",
        summary="List owners of tasks",
        description="Owners with jobs alive, or that ended in the last day, in your VOs; those with most jobs first.",
        parameters=[
            OpenApiParameter("q", str, description="a part of the name"),
            OpenApiParameter("share", str, description="only with jobs of this share, or of one below it"),
        ],
        responses={200: UsersShown, **refusals(400)},
    )
    def get(self, request: Request) -> Response:
        """As the page of users, with all of them."""
        said = take_only(request, FILTERS)
        scope = visible_vos(principal(request), READ)
        shares = shares_below(said["share"], scope)
        return Response(UsersShown(user_rows(scope, shares, said["q"], MOST_LISTED)).data)


class UserWorkView(APIView):
    permissions = {"get": OWN}

    @extend_schema(
        tags=["tasks"],
        operation_id="users_work",
        summary="Read the work of one owner",
        description="What needs attention, with the reason; then the live tasks, and those that ended lately.",
        responses={200: WorkShown, **refusals(400, 404)},
    )
    def get(self, request: Request, name: str) -> Response:
        """404 for a name without a task that the caller may see."""
        take_no_filter(request)
        scope = visible_vos(principal(request), OWN)
        if not visible_tasks(scope).filter(user_name=name).exists():
            raise Http404("Nobody of that name has a task in a VO that you can look into.")
        return _told(name, my_work(name, scope, clock.now()))


class OwnWorkView(APIView):
    permissions = {"get": OWN}

    @extend_schema(
        tags=["tasks"],
        operation_id="me_work",
        summary="Read your own work",
        description="Your tasks: what needs attention, with the reason; then the live ones, and those that ended lately.",
        responses={200: WorkShown, **refusals(400)},
    )
    def get(self, request: Request) -> Response:
        """As the page of one's own tasks."""
        take_no_filter(request)
        caller = principal(request)
        return _told(caller.name, my_work(caller.name, visible_vos(caller, OWN), clock.now()))


def _told(name: str, work: MyWork) -> Response:
    needing = [{**WorkTask(task.row).data, "attention": task.attention} for task in work.needing]
    live, ended = WorkTask(work.live, many=True).data, WorkTask(work.ended, many=True).data
    return Response({"user_name": name, "needs_attention": needing, "live": live, "ended": ended, "more": work.more})
