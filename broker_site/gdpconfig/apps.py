"""The Django app `gdpconfig`."""

from django.apps import AppConfig


class GdpconfigConfig(AppConfig):
    """Typed configuration: keys declared in code, overridden by rows in the database."""

    name = "broker_site.gdpconfig"
    label = "gdpconfig"
    verbose_name = "Configuration"
