"""The Django app `brokerage`."""

from django.apps import AppConfig


class BrokerageConfig(AppConfig):
    """Supply and match: where work runs."""

    name = "brokerage"
    label = "brokerage"
    verbose_name = "Brokerage"
