"""What the example dashboard and the example alerts ask of Prometheus is there to be scraped."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from broker_site.foundation.agency.models import Agent
from broker_site.foundation.kernel import clock
from brokerage.models import AskHour, QueueAsk, TallyGroup, TallyLevel
from tests.builders import grid

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "monitoring"
NAME = re.compile(r"gridbroker_\w+")

pytestmark = pytest.mark.django_db


def scraped(client: Client) -> dict[str, dict[tuple[str, ...], float]]:
    """Each sample by its name and the values of its labels."""
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(client.get("/metrics").text):
        found.setdefault(family.name, {})
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_every_name_in_dashboard_and_alerts_is_scraped(admin_client: Client) -> None:
    panels = json.loads((EXAMPLES / "dashboard.json").read_text())["panels"]
    asked = {name for panel in panels for target in panel["targets"] for name in NAME.findall(target["expr"])}
    asked |= set(NAME.findall((EXAMPLES / "alerts.yml").read_text()))
    assert len(asked) > 12
    Agent.objects.create(name="reap", runs=7, total_rows=40)
    assert asked <= set(scraped(admin_client))


def test_queues_agents_and_asks_are_told_with_their_numbers(admin_client: Client) -> None:
    (queue,) = grid("ALPHA")
    group = TallyGroup.objects.create(family="queue", vo="demo", queue="ALPHA")
    TallyLevel.objects.bulk_create([TallyLevel(group=group, what=what, n=n) for what, n in (("activated", 4), ("running", 3))])
    Agent.objects.create(name="reap", runs=7, total_rows=40, duration_s=0.5)
    now = clock.now()
    AskHour.objects.create(queue=queue, outcome="job", hour=now.replace(minute=0, second=0, microsecond=0), minutes=[1] * 60)
    QueueAsk.objects.bulk_create(
        QueueAsk(queue=queue, at=now, pilot_id="00000000-0000-4000-8000-000000000001", outcome="job", offer={}, took_ms=ms)
        for ms in (1, 2, 90)
    )
    found = scraped(admin_client)
    assert found["gridbroker_queue_jobs"] == {("waiting", "ALPHA"): 4, ("leased", "ALPHA"): 3}
    assert found["gridbroker_agent_runs_total"] == {("reap",): 7}
    assert found["gridbroker_agent_rows_total"] == {("reap",): 40}
    assert found["gridbroker_asks_this_hour"] == {("job",): 60}
    assert found["gridbroker_ask_seconds"][("50",)] == 0.002
