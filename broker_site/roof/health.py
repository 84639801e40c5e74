"""Whether the system lives and works: `/healthz` for a supervisor, `/readyz` for a load balancer, `/metrics` for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from broker_site.foundation.access.alerts import recent_alerts
from broker_site.foundation.access.guards import open_access, requires
from broker_site.roof.readiness import ages, problems


@open_access
def healthz(request: HttpRequest) -> HttpResponse:
    """Whether this process answers; asks nothing of database or queue."""
    return HttpResponse("ok\n", content_type="text/plain")


@open_access
def readyz(request: HttpRequest) -> HttpResponse:
    """Whether database and Redis take writes and no agent is late: 200, else 503, with the reasons."""
    found = problems()
    return JsonResponse({"ready": not found, "problems": found}, status=503 if found else 200)


@requires("agent:read")
def metrics(request: HttpRequest) -> HttpResponse:
    """Tasks and jobs that have not ended by state, and the agents, in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Collector())
    return HttpResponse(generate_latest(registry), content_type="text/plain; version=0.0.4; charset=utf-8")


class _Collector:
    """What a scrape shows, read at the scrape."""

    def collect(self) -> Iterator[Metric]:
        yield _counted(
            "gridbroker_tasks", "Tasks that have not ended, by state", "SELECT status, count(*) FROM workqueues_task "
            "WHERE ended_at IS NULL GROUP BY 1",
        )  # fmt: skip
        yield _counted(
            "gridbroker_jobs", "Jobs that have not ended, by state", "SELECT status, count(*) FROM brokerage_job "
            "WHERE ended_at IS NULL GROUP BY 1",
        )  # fmt: skip
        quarantined = GaugeMetricFamily("gridbroker_tasks_quarantined", "Tasks on which an agent failed too often, left alone")
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM workqueues_task WHERE quarantined_at IS NOT NULL")
            quarantined.add_metric([], cursor.fetchone()[0])
        yield quarantined
        alerts = GaugeMetricFamily("gridbroker_alerts", "Alerts of the last hour, by what they say", labels=["what"])
        for what, n in recent_alerts(1).items():
            alerts.add_metric([what], n)
        yield alerts
        by_agent = GaugeMetricFamily(
            "gridbroker_agent_age_seconds", "Time since an agent last ended a run well", labels=["agent"]
        )
        for name, age in ages(connection).items():
            by_agent.add_metric([name], age)
        yield by_agent


def _counted(name: str, text: str, sql: str) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=["status"])
    with connection.cursor() as cursor:
        cursor.execute(sql)
        for status, n in cursor.fetchall():
            family.add_metric([status], n)
    return family
