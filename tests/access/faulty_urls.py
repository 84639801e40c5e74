"""Routes that the system check must refuse, one fault each."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from django.views.generic import TemplateView
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import SimpleRouter
from rest_framework.views import APIView
from rest_framework.viewsets import ViewSet

from broker_site.foundation.access.guards import requires


def unguarded(request: HttpRequest) -> HttpResponse:
    return HttpResponse("everything")


@requires("job:report")
def report(request: HttpRequest, job: int) -> HttpResponse:
    return HttpResponse()


class HalfGuarded(ViewSet):
    permissions = {"list": "task:read"}

    def list(self, request: Request) -> Response:
        return Response()

    def create(self, request: Request) -> Response:
        return Response()


class Unknown(APIView):
    permissions = {"get": "task:reed"}

    def get(self, request: Request) -> Response:
        return Response()


class Allowing(APIView):
    permission_classes = [AllowAny]

    def get(self, request: Request) -> Response:
        return Response()


router = SimpleRouter()
router.register("half", HalfGuarded, basename="half")

urlpatterns = [
    path("unguarded/", unguarded),
    path("inner/", include([path("template/", TemplateView.as_view(template_name="x.html"))])),
    path("api/unknown/", Unknown.as_view()),
    path("api/allowing/", Allowing.as_view()),
    path("api/jobs/<int:job>/", report),
    path("api/", include(router.urls)),
    path("admin-beside/", admin.site._registry[next(iter(admin.site._registry))].changelist_view),
]
