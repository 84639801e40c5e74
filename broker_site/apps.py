"""The Django app `broker_site`: operator commands and templates of the site as a whole, and the agents' table."""

from django.apps import AppConfig


class BrokerSiteConfig(AppConfig):
    """Wiring above every other app."""

    name = "broker_site"
    label = "broker_site"
    verbose_name = "GridBroker"

    def ready(self) -> None:
        """Declare policies and agents, and give Celery beat its schedule."""
        import brokerage.policies  # noqa: F401, PLC0415
        from broker_site.beat import schedule  # noqa: PLC0415
        from broker_site.celery import app  # noqa: PLC0415

        app.set_default()
        app.conf.beat_schedule = schedule()
