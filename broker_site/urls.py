"""Every address of the site."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from broker_site.health import healthz, metrics, readyz

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("api/v1/", include("brokerage.api.pilot_urls")),
    path("api/v1/", include("workqueues.api.urls")),
    path("", include("monitoring.urls")),
]

handler400 = "monitoring.views.errors.bad_request"
handler403 = "monitoring.views.errors.forbidden"
handler404 = "monitoring.views.errors.not_found"
handler500 = "monitoring.views.errors.fault"
