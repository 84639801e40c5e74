"""What a supervisor, a load balancer and Prometheus see."""

from __future__ import annotations

import pytest
from django.test import Client

from broker_site.foundation.agency.duties import AGENTS
from broker_site.foundation.agency.models import Agent
from broker_site.foundation.kernel import clock
from tests.builders import parameters, submitted

pytestmark = pytest.mark.django_db


def test_a_system_whose_agents_never_ran_is_alive_and_not_ready(client: Client) -> None:
    assert client.get("/healthz").content == b"ok\n"
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "agent refine has never ended a run" in answer.json()["problems"]


def test_a_system_is_ready_when_every_agent_ended_a_run_lately(client: Client) -> None:
    Agent.objects.bulk_create(Agent(name=name, last_success=clock.now()) for name in AGENTS)
    assert client.get("/readyz").json() == {"ready": True, "problems": []}


def test_metrics_are_for_who_may_read_agents(client: Client, admin_client: Client) -> None:
    assert client.get("/metrics").status_code == 401
    submitted(parameters())
    text = admin_client.get("/metrics").content.decode()
    assert 'gridbroker_tasks{status="registered"} 1.0' in text
