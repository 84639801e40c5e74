"""`/api/v1/agents/`: whether the agents do their work."""

from __future__ import annotations

from typing import Any, get_args

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from broker_site.foundation.agency.duties import Health
from broker_site.foundation.rest.filtering import take_no_filter
from broker_site.foundation.rest.openapi import refusals
from monitoring.queries.agents import agent_rows

READ = "agent:read"


class AgentShown(serializers.Serializer[Any]):
    """One agent, and what it last did."""

    name = serializers.CharField()
    health = serializers.ChoiceField(get_args(Health), help_text="well, failing, late, off, or never: it has not run yet")
    what_for = serializers.CharField(help_text="what it does, in words")
    enabled = serializers.BooleanField(help_text="false: switched off in the configuration")
    period_s = serializers.FloatField(help_text="longest time between two runs, s")
    last_start = serializers.DateTimeField(allow_null=True)
    last_success = serializers.DateTimeField(allow_null=True)
    duration_s = serializers.FloatField(help_text="of its last run, s")
    rows = serializers.IntegerField(help_text="handled by the last run")
    total_rows = serializers.IntegerField(help_text="handled by all runs")
    runs = serializers.IntegerField()
    last_error_at = serializers.DateTimeField(allow_null=True)
    last_error = serializers.CharField(allow_blank=True)
    left_out = serializers.CharField(allow_blank=True, help_text="what it could not work on")


class AgentsView(APIView):
    permissions = {"get": READ}

    @extend_schema(
        tags=["system"],
        operation_id="agents_list",
        summary="Whether the agents are well",
        description="Every agent in the order of a task's life, also those that never ran.",
        responses={200: AgentShown(many=True), **refusals(400)},
    )
    def get(self, request: Request) -> Response:
        """All of them: there are few."""
        take_no_filter(request)
        return Response(AgentShown(agent_rows(), many=True).data)
