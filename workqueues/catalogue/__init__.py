"""Where data are: the port through which agents ask, and the catalogue behind it. Called outside of transactions only."""

from workqueues.catalogue.local import LocalCatalogue
from workqueues.catalogue.port import Catalogue, CatalogueUnavailable, Condition, Copies, locate_storages_with

__all__ = ["Catalogue", "CatalogueUnavailable", "Condition", "Copies", "catalogue", "locate_storages_with"]


def catalogue() -> Catalogue:
    return LocalCatalogue()
