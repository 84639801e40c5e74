"""Every address of the site."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView

from broker_site.foundation.access.rest import permission
from broker_site.foundation.rest.one_address import one_address
from broker_site.roof.health import healthz, readyz
from broker_site.roof.metrics import metrics
from brokerage.api.pilots import register_pilot
from brokerage.api.urls import page_urlpatterns as look_urlpatterns
from monitoring.api.pilots import Pilots
from workqueues.api.urls import page_urlpatterns

schema = SpectacularAPIView.as_view(permission_classes=[permission("schema:read")])

admin.site.site_header = admin.site.site_title = "GridBroker"
admin.site.index_title = "Administration"
admin.site.enable_nav_sidebar = False  # lists need its room; the breadcrumbs lead back

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("api/v1/pilots/", one_address(register_pilot, Pilots.as_view({"get": "list"})), name="pilot-list"),
    path("api/v1/", include("brokerage.api.urls")),
    path("api/v1/schema/", schema, name="schema"),
    path("api/v1/", include("workqueues.api.urls")),
    path("api/v1/", include("monitoring.api.urls")),
    path("", include(page_urlpatterns)),
    path("", include(look_urlpatterns)),
    path("", include("monitoring.urls")),
]

handler400 = "monitoring.views.errors.bad_request"
handler403 = "monitoring.views.errors.forbidden"
handler404 = "monitoring.views.errors.not_found"
handler500 = "monitoring.views.errors.fault"
