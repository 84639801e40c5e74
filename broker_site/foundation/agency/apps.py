"""Django's name for the agency."""

from django.apps import AppConfig

from broker_site.foundation.sql import times


class AgencyConfig(AppConfig):
    name = "broker_site.foundation.agency"
    label = "agency"

    def ready(self) -> None:
        """Read every point of time that the database may hold."""
        times.register()
