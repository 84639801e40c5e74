"""The Django app `brokerage`."""

from django.apps import AppConfig


class BrokerageConfig(AppConfig):
    """Supply and match: where work runs."""

    name = "brokerage"
    label = "brokerage"
    verbose_name = "Brokerage"

    def ready(self) -> None:
        """Tell the catalogue, which is below, where the grid's storage endpoints are."""
        from brokerage.queries.storages import storage_directories
        from workqueues.catalogue import locate_storages_with

        locate_storages_with(storage_directories)
