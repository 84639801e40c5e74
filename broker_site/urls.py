"""Every address of the site."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver, include, path

from broker_site.access.guards import open_access


@open_access
def healthz(request: HttpRequest) -> HttpResponse:
    """Whether this process answers; asks nothing of database or queue."""
    return HttpResponse("ok\n", content_type="text/plain")


urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", healthz, name="healthz"),
    path("admin/", admin.site.urls),
    path("api/v1/", include("brokerage.api.pilot_urls")),
]
