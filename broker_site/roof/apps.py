"""The Django app `broker_site`: operator commands and templates of the site as a whole, and the agents' table."""

from django.apps import AppConfig, apps


class BrokerSiteConfig(AppConfig):
    name = "broker_site.roof"
    label = "broker_site"
    verbose_name = "GridBroker"

    def ready(self) -> None:
        """Declare policies and agents, so that their Celery tasks are known wherever Django runs; give columns their labels."""
        import broker_site.roof.beat  # noqa: F401
        from broker_site.celery import app
        from broker_site.foundation.adminpages import call_columns

        app.set_default()
        call_columns(apps.get_models())
