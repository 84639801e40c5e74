"""The Django app `monitoring`."""

from django.apps import AppConfig


class MonitoringConfig(AppConfig):
    """Reading: pages, tables and the read API."""

    name = "monitoring"
    verbose_name = "Monitoring"
