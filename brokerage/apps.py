"""The Django app `brokerage`."""

from django.apps import AppConfig


class BrokerageConfig(AppConfig):
    """Supply and match: where work runs."""

    name = "brokerage"
    label = "brokerage"
    verbose_name = "Brokerage"

    def ready(self) -> None:
        """Declare our policies, and tell the catalogue, which is below, where the grid's storage endpoints are."""
        import brokerage.policies  # noqa: F401
        from brokerage.queries.storages import storage_directories
        from workqueues.catalogue import locate_storages_with

        locate_storages_with(storage_directories)
