"""A small site with one view of each kind that access guards, for the tests of access alone."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import OperationalError, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import include, path
from django.views.decorators.http import require_POST
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.views import APIView
from rest_framework.viewsets import ViewSet

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.guards import open_access, page_requires, requires
from broker_site.foundation.access.jsonbody import TASK_BODY_LIMIT, read_object
from broker_site.foundation.access.logins import PasswordLogin
from broker_site.foundation.access.permissions import visible_vos
from broker_site.foundation.access.problems import Refused
from broker_site.foundation.access.rest import Open, permission, principal
from broker_site.foundation.access.throttles import SubmitThrottle


def _caller(request: HttpRequest) -> JsonResponse:
    who = request.principal  # type: ignore[attr-defined]
    return JsonResponse({"kind": who.kind, "name": who.name, "queue": who.queue, "vos": sorted(visible_vos(who).names)})


@open_access
def health(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok")


@requires("pilot:register")
def register(request: HttpRequest) -> HttpResponse:
    return _caller(request)


@requires("pilot:match")
def match(request: HttpRequest) -> HttpResponse:
    return _caller(request)


@requires("job:report")
def report(request: HttpRequest, job_id: int) -> HttpResponse:
    return JsonResponse({"job": job_id, "body": read_object(request)})


@require_POST
@requires("task:command")
def kill(request: HttpRequest, task_id: int) -> HttpResponse:
    """Task 9 conflicts after its row was noted, 10 breaks, 11 forgets its row; the others are killed."""
    who = request.principal  # type: ignore[attr-defined]
    with transaction.atomic():
        if task_id == 11:
            return JsonResponse({})
        audit("task.kill", who, f"task {task_id}", vo="atlas", before={"status": "running"}, after={"status": "aborting"})
        if task_id == 9:
            raise Refused(409, "Wrong state", "The task is done.")
        if task_id == 10:
            raise KeyError("internal secret")
    return JsonResponse({})


@requires("task:read")
def unavailable(request: HttpRequest) -> HttpResponse:
    raise OperationalError("connection to server at 10.0.0.7 failed")


@page_requires("task:read")
def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse("<p>tasks</p>")


class TaskIn(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=20)
    priority = serializers.IntegerField(min_value=0, required=False)


class Tasks(ViewSet):
    permissions = {"list": "task:read", "create": "task:submit", "stop": "task:command"}
    throttle_classes = [SubmitThrottle]
    body_limit = TASK_BODY_LIMIT

    def list(self, request: Request) -> Response:
        return Response({"name": principal(request).name, "vos": sorted(visible_vos(principal(request)).names)})

    def create(self, request: Request) -> Response:
        data = TaskIn(data=request.data)
        data.is_valid(raise_exception=True)
        return Response(data.validated_data, status=201)

    @action(detail=True, methods=["post"])
    def stop(self, request: Request, pk: str) -> Response:
        return Response({})


class Grid(APIView):
    permission_classes = [permission("grid:read")]

    def get(self, request: Request) -> Response:
        return Response({"user": str(request.user)})


class Version(APIView):
    permission_classes = [Open]

    def get(self, request: Request) -> Response:
        return Response({"version": 1})


router = SimpleRouter()
router.register("tasks", Tasks, basename="task")

urlpatterns = [
    path("admin/", admin.site.urls),
    path("login/", open_access(PasswordLogin.as_view(template_name="admin/login.html")), name="login"),
    path("healthz", health),
    path("tasks/", page),
    path("tasks.csv", page),
    path("api/v1/pilots/", register),
    path("api/v1/pilots/match/", match),
    path("api/v1/jobs/<int:job_id>/report/", report),
    path("api/v1/kill/<int:task_id>/", kill),
    path("api/v1/unavailable/", unavailable),
    path("api/v1/grid/", Grid.as_view()),
    path("api/v1/version/", Version.as_view()),
    path("api/v1/", include(router.urls)),
]
