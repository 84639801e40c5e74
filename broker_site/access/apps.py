"""The Django app `access`."""

from django.apps import AppConfig


class AccessConfig(AppConfig):
    """Who may do what: users, roles per VO, tokens, permissions."""

    name = "broker_site.access"
    label = "access"
    verbose_name = "Access"
