"""The Django app `broker_site`: operator commands and templates of the site as a whole, and the agents' table."""

from __future__ import annotations

import gc
from types import ModuleType

from django.apps import AppConfig, apps

COLLECT_AFTER = (20_000, 10, 20)
"""Objects made beyond those gone, before the collector of garbage looks at the young ones; at the older ones every so many times.

With Python's 700 and 10 and 10 a process that serves pilots looked through all that it knows of waiting jobs again and again, an
eighth of its time, and found nothing: asks leave no garbage that goes round in circles, and must not.
"""


class BrokerSiteConfig(AppConfig):
    name = "broker_site.roof"
    label = "broker_site"
    verbose_name = "GridBroker"

    def __init__(self, app_name: str, app_module: ModuleType | None) -> None:
        """The first of the apps: until `ready`, all that is made is kept, and to look through it for garbage takes a sixth of
        the time that a process needs to start.
        """
        super().__init__(app_name, app_module)
        self._collects = gc.isenabled()
        gc.disable()

    def ready(self) -> None:
        """Declare policies and agents, so that their Celery tasks are known wherever Django runs; give columns their labels."""
        import broker_site.roof.beat  # noqa: F401
        from broker_site.celery import app
        from broker_site.foundation.adminpages import call_columns

        app.set_default()
        call_columns(apps.get_models())
        gc.freeze()
        gc.set_threshold(*COLLECT_AFTER)
        if self._collects:
            gc.enable()
