"""`/metrics` for Prometheus: what waits and runs, the agents, decisions, asks of pilots, idle slots.

What is counted over time comes from the roll-ups, as they were last counted; nothing here groups live rows. Dashboard and rules
for alerts that use these names are in `examples/monitoring`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import redis
from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from broker_site.celery import QUEUE
from broker_site.foundation import gdpconfig
from broker_site.foundation.access.alerts import recent_alerts
from broker_site.foundation.access.guards import requires
from broker_site.foundation.agency.models import Agent
from broker_site.roof.readiness import ages
from brokerage.models import ComputingQueue
from brokerage.queries.idle_slots import idle_at_queues
from brokerage.states import JOB

_TASKS = "SELECT state, sum(n)::bigint FROM brokerage_tasklevel GROUP BY 1"
_QUARANTINED = "SELECT count(*) FROM workqueues_task WHERE quarantined_at IS NOT NULL"
_JOBS = """
SELECT l.what, sum(l.n)::bigint FROM brokerage_tallylevel l JOIN brokerage_tallygroup g ON g.id = l.group_id
WHERE g.family = 'vo' GROUP BY 1 HAVING sum(l.n) > 0
"""
_AT_QUEUES = f"""
SELECT g.queue, CASE WHEN l.what IN ({JOB.waiting.sql}) THEN 'waiting' ELSE 'leased' END, sum(l.n)::bigint
FROM brokerage_tallylevel l JOIN brokerage_tallygroup g ON g.id = l.group_id
WHERE g.family = 'queue' AND g.queue <> '' AND l.what IN ({JOB.waiting.sql}, {JOB.leased.sql}) GROUP BY 1, 2
"""
_ENDED = f"""
SELECT b.what, sum(b.n)::bigint FROM brokerage_tallygroup g JOIN brokerage_tallybucket b ON b.group_id = g.id
WHERE g.family = 'vo' AND b.step_s = 60 AND b.what IN ({(JOB.states - JOB.live).sql}) AND b.at >= now() - interval '1 hour'
GROUP BY 1
"""
_COUNTED_AT = "SELECT extract(epoch FROM counted_at)::float8 FROM brokerage_tallymark WHERE counted_at IS NOT NULL"
# The newest rows alone, by the primary key: of a busy broker the last minutes, of a quiet one the last days.
_DECISIONS = """
SELECT policy, outcome, count(*) FROM (SELECT policy, outcome, last_at FROM brokerage_decision ORDER BY id DESC LIMIT 5000) AS d
WHERE last_at >= now() - interval '5 minutes' GROUP BY 1, 2
"""
_ASKS = """
SELECT outcome, sum((SELECT sum(n) FROM unnest(minutes) AS n))::bigint FROM brokerage_askhour
WHERE hour >= date_trunc('hour', now()) GROUP BY 1
"""
_LATENCIES = """
SELECT percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY took_ms / 1000.0) FROM (
    SELECT took_ms, at FROM brokerage_queueask ORDER BY id DESC LIMIT 2000) AS newest WHERE at >= now() - interval '5 minutes'
"""
PERCENTILES = ("50", "95", "99")


@requires("agent:read")
def metrics(request: HttpRequest) -> HttpResponse:
    """All of it in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Collector())
    return HttpResponse(generate_latest(registry), content_type="text/plain; version=0.0.4; charset=utf-8")


class _Collector:
    """What a scrape shows, read at the scrape."""

    def collect(self) -> Iterator[Metric]:
        yield _gauge("tasks", "Tasks that have not ended, by state, as they were last counted", ("status",), _rows(_TASKS))
        yield _gauge("tasks_quarantined", "Tasks on which an agent failed too often, left alone", (), _rows(_QUARANTINED))
        yield _gauge("jobs", "Jobs that have not ended, by state, as they were last counted", ("status",), _rows(_JOBS))
        yield _gauge("queue_jobs", "Jobs that wait or have a pilot, by computing queue", ("queue", "are"), _rows(_AT_QUEUES))
        yield _gauge("jobs_ended_last_hour", "Jobs that ended in the last hour, by state", ("status",), _rows(_ENDED))
        yield _gauge("jobs_counted_timestamp_seconds", "When jobs and tasks were last counted", (), _rows(_COUNTED_AT))
        yield _gauge(
            "recent_decisions", "Decisions of the brokerage in the last 5 minutes, new or repeated", ("policy", "outcome"),
            _rows(_DECISIONS),
        )  # fmt: skip
        yield _gauge("asks_this_hour", "Asks of pilots since the full hour, by outcome", ("outcome",), _rows(_ASKS))
        yield _gauge(
            "ask_seconds", "How long asks of pilots took in the last 5 minutes, of at most 2000", ("percentile",), _latencies()
        )
        yield _gauge("alerts", "Alerts of the last hour, by what they say", ("what",), recent_alerts(1).items())
        yield _gauge("messages_waiting", "Messages to agents that no worker has taken yet", (), _messages())
        yield from _agents()
        yield from _idle()


def _gauge(name: str, text: str, labels: Sequence[str], rows: Any) -> GaugeMetricFamily:
    """A family of rows of labels, the value last."""
    family = GaugeMetricFamily(f"gridbroker_{name}", text, labels=labels)
    for *values, number in rows:
        family.add_metric([str(value) for value in values], float(number))
    return family


def _rows(sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def _latencies() -> list[tuple[str, float]]:
    ((values,),) = _rows(_LATENCIES)
    return list(zip(PERCENTILES, values, strict=True)) if values else []


def _messages() -> list[tuple[float]]:
    """None where Redis does not answer: `/readyz` says so."""
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=2, socket_connect_timeout=2) as client:
            return [(float(client.llen(QUEUE)),)]
    except redis.RedisError:
        return []


def _agents() -> Iterator[Metric]:
    known = list(Agent.objects.order_by("name"))
    config = gdpconfig.component("agents")
    periods = [(agent.name, config[f"PERIOD_{agent.name}"]) for agent in known if f"PERIOD_{agent.name}" in config]
    yield _gauge("agent_age_seconds", "Time since an agent last ended a run well", ("agent",), ages(connection).items())
    yield _gauge("agent_period_seconds", "Longest time between two runs of an agent", ("agent",), periods)
    yield _gauge(
        "agent_run_seconds", "How long the last run of an agent took", ("agent",), [(a.name, a.duration_s) for a in known]
    )
    for name, text, column in (
        ("agent_runs", "Runs of an agent since installation", "runs"),
        ("agent_rows", "Rows that an agent handled since installation", "total_rows"),
    ):
        counter = CounterMetricFamily(f"gridbroker_{name}", text, labels=("agent",))
        for agent in known:
            counter.add_metric([agent.name], getattr(agent, column))
        yield counter


def _idle() -> Iterator[Metric]:
    """Idle slots of the queues where any idled in the last day."""
    now, day = [], []
    names = dict(ComputingQueue.objects.values_list("id", "name"))
    for queue, idle in sorted(idle_at_queues().items()):
        idle_s, beside_s, held_s = idle.day_s
        for beside, n, seconds in (
            ("work", idle.beside, beside_s),
            ("held", idle.held, held_s),
            ("nothing", idle.idle - idle.beside - idle.held, idle_s - beside_s - held_s),
        ):
            now.append((names[queue], beside, n))
            day.append((names[queue], beside, seconds))
    yield _gauge(
        "idle_slots", "Slots that asked in vain, by what they stand beside: eligible work, held work (a share, the throttler or a"
        " cap), or nothing", ("queue", "beside"), now,
    )  # fmt: skip
    yield _gauge(
        "idle_seconds_last_day", "Seconds of idle slots in the last day, by what they stood beside", ("queue", "beside"), day
    )
