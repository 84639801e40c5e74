"""Django's entry to the app; registers its system checks, and what happens when somebody signs in."""

from typing import Any

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in
from django.http import HttpRequest


class AccessConfig(AppConfig):
    """The app `access`; owner of AUTH_USER_MODEL."""

    name = "broker_site.foundation.access"
    label = "access"
    verbose_name = "Access"

    def ready(self) -> None:
        from broker_site.foundation.access import database_rights, routes  # noqa: F401

        user_logged_in.connect(_begin_session, dispatch_uid="broker_site.session")


def _begin_session(request: HttpRequest, **signal: Any) -> None:
    from broker_site.foundation.access.sessions import begin

    begin(request.session)
