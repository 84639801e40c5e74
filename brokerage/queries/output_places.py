"""Where a child broker may leave what it makes: at storage endpoints of its own sites (row X5)."""

from __future__ import annotations

from collections.abc import Collection

from brokerage.models import QueueStorage, StorageEndpoint
from workqueues.ledger.elements.ends import NOWHERE, OutputPlaces
from workqueues.models import ChildBroker


def output_places(child_id: int, names: Collection[str]) -> OutputPlaces:
    """Those of the named storage endpoints that the grid knows, with their sites and those whose queues use them; and the sites
    that the child told last.
    """
    if not names:
        return NOWHERE
    storages = {name: {site} for name, site in StorageEndpoint.objects.filter(name__in=names).values_list("name", "site_id")}
    used = QueueStorage.objects.filter(storage_id__in=storages).values_list("storage_id", "queue__site_id").distinct()
    for name, site in used:
        storages[name].add(site)
    return OutputPlaces(storages, ChildBroker.objects.values_list("sites", flat=True).get(id=child_id))
