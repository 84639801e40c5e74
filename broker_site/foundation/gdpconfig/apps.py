"""The Django app of gdpconfig. When all apps are there it imports `config_keys` of each, which declares that app's keys."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules


class GdpconfigConfig(AppConfig):
    """gdpconfig: typed, documented configuration with overrides in the database."""

    name = "broker_site.foundation.gdpconfig"
    label = "gdpconfig"
    verbose_name = "Configuration (gdpconfig)"

    def ready(self) -> None:
        """Import `<app>.config_keys` of every installed app, if there; drop what was read when tables are emptied."""
        autodiscover_modules("config_keys")
        post_migrate.connect(_forget, sender=self)


def _forget(**_: object) -> None:
    """`flush` and `migrate` send this: what this process has read before may be gone."""
    from broker_site.foundation.gdpconfig.reading import forget

    forget()
