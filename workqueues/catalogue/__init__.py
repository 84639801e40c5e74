"""Where data are: the port through which agents ask, and the catalogue behind it. Called outside of transactions only."""

from workqueues.catalogue.local import LocalCatalogue
from workqueues.catalogue.port import (
    Catalogue,
    CatalogueUnavailable,
    Copies,
    locate_storages_with,
    storage_faults,
)
from workqueues.rules.refine import DatasetKey

__all__ = ["Catalogue", "CatalogueUnavailable", "Copies", "DatasetKey", "catalogue", "locate_storages_with", "storage_faults"]


def catalogue() -> Catalogue:
    return LocalCatalogue()
