"""Django's entry to the app; registers the system check of routes."""

from django.apps import AppConfig


class AccessConfig(AppConfig):
    """The app `access`; owner of AUTH_USER_MODEL."""

    name = "broker_site.foundation.access"
    label = "access"
    verbose_name = "Access"

    def ready(self) -> None:
        from broker_site.foundation.access import routes  # noqa: F401
