"""Addresses below /api/v1/ of what pages show and neither demand nor supply has by itself."""

from __future__ import annotations

from django.urls import path

from monitoring.api.agents import AgentsView
from monitoring.api.caller import CallerView
from monitoring.api.job_errors import JobErrorsView
from monitoring.api.pilots import Pilots

urlpatterns = [
    path("agents/", AgentsView.as_view(), name="agent-list"),
    path("errors/", JobErrorsView.as_view(), name="error-list"),
    path("pilots/<uuid:pilot_id>/", Pilots.as_view({"get": "retrieve"}), name="pilot-detail"),
    path("me/", CallerView.as_view(), name="caller"),
]
