"""Agent storage. Takes the storage endpoints that have a directory or a server. Leaves them up, down, read only, full or
unmarked, and those who wait for one that is back due. Next: feed, wake, and whoever reads the grid.
"""

from __future__ import annotations

import logging

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.batches import one_by_one
from broker_site.foundation.agency.run import Run, agent
from brokerage.feeds.storage_roots import look_at_all
from brokerage.ledger.storages import note_root, note_space
from brokerage.models import StorageEndpoint
from brokerage.queries.pilots import storage_roots
from brokerage.rules.grid.storage_root import judge_root

logger = logging.getLogger(__name__)


@agent("storage")
def storage(run: Run) -> int:
    """Look at the root of every endpoint: how many changed their state."""
    full_below_gb = gdpconfig.value("storage", "FULL_BELOW")
    roots = storage_roots()
    looks, free_gb = look_at_all(roots), dict[str, float | None]()

    def judge(endpoint: StorageEndpoint) -> bool:
        look, mark = looks[endpoint.name], roots[endpoint.name].mark
        free_gb[endpoint.name] = None if look.fault or not mark else look.free_gb
        verdict = judge_root(mark, look, full_below_gb)
        changed = note_root(endpoint, verdict, look.size_gb or endpoint.root_gb)
        if changed:
            logger.warning("storage %s is %s: %s", endpoint.name, verdict.state, verdict.fault or "its mark is found")
        return bool(changed)

    endpoints = StorageEndpoint.objects.filter(name__in=roots).order_by("name")
    changed = sum(one_by_one(endpoints, judge, lambda endpoint, error: run.leave(f"storage {endpoint.name}", error)))
    note_space(free_gb)
    return changed
