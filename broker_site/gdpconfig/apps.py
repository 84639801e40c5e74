"""The Django app of gdpconfig. When all apps are there it imports `config_keys` of each, which declares that app's keys."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class GdpconfigConfig(AppConfig):
    """gdpconfig: typed, documented configuration with overrides in the database."""

    name = "broker_site.gdpconfig"
    label = "gdpconfig"
    verbose_name = "Configuration (gdpconfig)"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import `<app>.config_keys` of every installed app; an app without one has no keys."""
        autodiscover_modules("config_keys")
