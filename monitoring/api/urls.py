"""Addresses below /api/v1/ of what pages show and neither demand nor supply has by itself."""

from __future__ import annotations

from django.urls import path

from monitoring.api.agents import AgentsView
from monitoring.api.caller import CallerView
from monitoring.api.job_errors import JobErrorsView
from monitoring.api.pilots import Pilots
from monitoring.api.search import SearchView
from monitoring.api.users import OwnWorkView, UsersView, UserWorkView

urlpatterns = [
    path("agents/", AgentsView.as_view(), name="agent-list"),
    path("errors/", JobErrorsView.as_view(), name="error-list"),
    path("pilots/<uuid:pilot_id>/", Pilots.as_view({"get": "retrieve"}), name="pilot-detail"),
    path("me/", CallerView.as_view(), name="caller"),
    path("me/tasks/", OwnWorkView.as_view(), name="own-work"),
    path("search/", SearchView.as_view(), name="search"),
    path("users/", UsersView.as_view(), name="user-list"),
    path("users/<path:name>/tasks/", UserWorkView.as_view(), name="user-work"),
]
