"""Whether the grid has a nucleus, a storage endpoint, or queues and sites of a name."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from broker_site.foundation.kernel.registry import nearest
from brokerage.models import ComputingQueue, Site, StorageEndpoint
from brokerage.rules.facts.queue_names import names_in

MOST_FAULTS = 20
"""Names that are told together: to find the nearest one takes time."""


def nucleus_fault(name: str) -> str:
    """What is wrong with the name of a nucleus, with the nearest one; empty where it is one, or while the grid has no sites."""
    sites = dict(Site.objects.values_list("name", "nucleus"))
    if not sites or sites.get(name):
        return ""
    return _unknown("nucleus", name, [site for site, collects in sites.items() if collects])


def no_site_faults(names: Iterable[str]) -> list[str]:
    """What is wrong with the first of the names that no site has, with the nearest ones; nothing while the grid has no sites."""
    known = dict.fromkeys(Site.objects.values_list("name", flat=True))
    return [_unknown("site", name, list(known)) for name in islice((n for n in names if known and n not in known), MOST_FAULTS)]


def destination_fault(name: str) -> str:
    """What is wrong with the name of a storage endpoint, with the nearest one; empty where it is one, or while there are none."""
    storages = list(StorageEndpoint.objects.values_list("name", flat=True))
    return "" if not storages or name in storages else _unknown("storage endpoint", name, storages)


def site_faults(names: str, *, storages: bool = False) -> list[str]:
    """What is wrong with the first of the names in a list with commas that are no queue's or site's, nor, with `storages`, a
    storage endpoint's; nothing while the grid has no queues. With `*` it is a pattern, and a queue has parts behind a slash.
    """
    known = {name for row in ComputingQueue.objects.values_list("name", "site_id") for name in row}
    more = set(StorageEndpoint.objects.values_list("name", flat=True)) if storages and known else set()
    unknown = (n for n in names_in(names) if known and "*" not in n and not (known | more) & {n, n.rpartition("/")[0]})
    return [_unknown("queue or site", name, sorted(known)) for name in islice(unknown, MOST_FAULTS)]


def _unknown(what: str, name: str, known: list[str]) -> str:
    near = nearest(name, known)
    return f"the grid has no {what} {name}" + (f"; the nearest name is {near}" if near else "")
