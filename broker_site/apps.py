"""The Django app that holds wiring and operator commands."""

from django.apps import AppConfig


class BrokerSiteConfig(AppConfig):
    """Wiring: settings, commands, private servers."""

    name = "broker_site"
    verbose_name = "GridBroker"

    def ready(self) -> None:
        """Load the Celery application, so that tasks sent from the web process go through it."""
        from broker_site import celery

        celery.app.set_default()
