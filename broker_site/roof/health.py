"""Whether the system lives and works: `/healthz` for a supervisor, `/readyz` for a load balancer."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse

from broker_site.foundation.access.guards import open_access
from broker_site.roof.readiness import problems


@open_access
def healthz(request: HttpRequest) -> HttpResponse:
    """Whether this process answers; asks nothing of database or queue."""
    return HttpResponse("ok\n", content_type="text/plain")


@open_access
def readyz(request: HttpRequest) -> HttpResponse:
    """Whether database and Redis take writes and no agent is late: 200, else 503, with the reasons."""
    found = problems()
    return JsonResponse({"ready": not found, "problems": found}, status=503 if found else 200)
