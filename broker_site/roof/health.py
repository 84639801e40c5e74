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
from brokerage.models import ComputingQueue
from brokerage.queries.idle_slots import idle_at_queues

_JOBS = """
SELECT l.what, sum(l.n)::bigint FROM brokerage_tallygroup g JOIN brokerage_tallylevel l ON l.group_id = g.id
WHERE g.family = 'vo' GROUP BY 1 HAVING sum(l.n) > 0
"""
"""As the agent tally keeps them: a scrape reads no job."""


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
    """Tasks and jobs that have not ended by state, the agents, and idle slots, in Prometheus' text format."""
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
        yield _counted("gridbroker_jobs", "Jobs that have not ended, by state, as they were last counted", _JOBS)
        counted_at = GaugeMetricFamily("gridbroker_jobs_counted_timestamp_seconds", "When jobs were last counted")
        with connection.cursor() as cursor:
            cursor.execute("SELECT extract(epoch FROM counted_at)::float8 FROM brokerage_tallymark")
            for (at,) in cursor.fetchall():
                counted_at.add_metric([], at)
        yield counted_at
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
        yield from _idle()


def _idle() -> Iterator[Metric]:
    """Idle slots of the queues where any idled in the last day."""
    slots = GaugeMetricFamily(
        "gridbroker_idle_slots", "Slots that asked in vain, by what they stand beside: eligible work, held work (a share, the "
        "throttler or a cap), or nothing", labels=["queue", "beside"],
    )  # fmt: skip
    seconds = GaugeMetricFamily(
        "gridbroker_idle_seconds_last_day", "Seconds of idle slots in the last day, by what they stood beside",
        labels=["queue", "beside"],
    )  # fmt: skip
    names = dict(ComputingQueue.objects.values_list("id", "name"))
    for queue, idle in sorted(idle_at_queues().items()):
        idle_s, beside_s, held_s = idle.day_s
        for beside, n, s in (
            ("work", idle.beside, beside_s),
            ("held", idle.held, held_s),
            ("nothing", idle.idle - idle.beside - idle.held, idle_s - beside_s - held_s),
        ):
            slots.add_metric([names[queue], beside], n)
            seconds.add_metric([names[queue], beside], s)
    yield slots
    yield seconds


def _counted(name: str, text: str, sql: str) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=["status"])
    with connection.cursor() as cursor:
        cursor.execute(sql)
        for status, n in cursor.fetchall():
            family.add_metric([status], n)
    return family
