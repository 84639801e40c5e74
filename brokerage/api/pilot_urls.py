"""Addresses of the pilot verbs, below /api/v1/."""

from django.urls import path

from brokerage.api import pilots

urlpatterns = [
    path("pilots/", pilots.register_pilot, name="pilot-register"),
    path("pilots/match/", pilots.match, name="pilot-match"),
    path("pilots/settled/", pilots.settled, name="pilot-settled"),
    path("jobs/<int:job_id>/heartbeat/", pilots.heartbeat, name="job-heartbeat"),
    path("jobs/<int:job_id>/report/", pilots.report, name="job-report"),
]
