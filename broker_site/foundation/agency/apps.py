"""Django's name for the agency."""

from django.apps import AppConfig


class AgencyConfig(AppConfig):
    name = "broker_site.foundation.agency"
    label = "agency"
