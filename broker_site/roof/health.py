"""Whether the system lives and works: `/healthz` for a supervisor, `/readyz` for a load balancer, `/metrics` for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.guards import open_access, requires
from broker_site.foundation.agency.duties import AGENTS, late_after_s


@open_access
def healthz(request: HttpRequest) -> HttpResponse:
    """Whether this process answers; asks nothing of database or queue."""
    return HttpResponse("ok\n", content_type="text/plain")


@open_access
def readyz(request: HttpRequest) -> HttpResponse:
    """Whether the database takes writes and no agent is late: 200, else 503, with the reasons."""
    try:
        problems = [*_unwritable(), *late_agents()]
    except DatabaseError as error:
        problems = [f"the database does not answer: {type(error).__name__}"]
    return JsonResponse({"ready": not problems, "problems": problems}, status=503 if problems else 200)


@requires("agent:read")
def metrics(request: HttpRequest) -> HttpResponse:
    """Tasks and jobs that have not ended by state, and the agents, in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Collector())
    return HttpResponse(generate_latest(registry), content_type="text/plain; version=0.0.4; charset=utf-8")


def late_agents() -> list[str]:
    """A sentence for each enabled agent that should have ended a run by now."""
    ages = _ages()
    late = []
    for name in AGENTS:
        if not gdpconfig.value("agents", f"ENABLED_{name}"):
            continue
        limit = late_after_s(gdpconfig.value("agents", f"PERIOD_{name}"))
        age = ages.get(name)
        if age is None:
            late.append(f"agent {name} has never ended a run")
        elif age > limit:
            late.append(f"agent {name} last ended a run {age:.0f} s ago, expected within {limit:.0f} s")
    return late


def _ages() -> dict[str, float]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, extract(epoch FROM now() - last_success) FROM agency_agent WHERE last_success IS NOT NULL")
        return {name: float(age) for name, age in cursor.fetchall()}


def _unwritable() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'")
        (read_only,) = cursor.fetchone()
    return ["the database takes no writes"] if read_only else []


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
        ages = GaugeMetricFamily("gridbroker_agent_age_seconds", "Time since an agent last ended a run well", labels=["agent"])
        for name, age in _ages().items():
            ages.add_metric([name], age)
        yield ages


def _counted(name: str, text: str, sql: str) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=["status"])
    with connection.cursor() as cursor:
        cursor.execute(sql)
        for status, n in cursor.fetchall():
            family.add_metric([status], n)
    return family
