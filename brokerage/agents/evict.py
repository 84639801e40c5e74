"""Agent evict. Takes cache copies whose time is over or that nobody needs where space is short, and all copies that are deleting.
Leaves them removed. Next: transfer, for those who wish them again.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.run import Run, agent
from brokerage.feeds.storage_roots import look_at
from brokerage.ledger.transfers.caches import (
    DoomedCopy,
    claim_removals,
    give_back,
    mark_expired,
    mark_oldest,
    note_removed,
)
from brokerage.pilot.remote_root import RemoteRoot
from brokerage.pilot.storage_root import StorageRoot
from brokerage.queries.cache_storages import storages_with_caches, storages_with_removals
from brokerage.queries.pilots import storage_roots
from brokerage.rules.grid.storage_root import RootLook
from brokerage.rules.transfers.caches import bytes_short
from brokerage.transfers.choice import NoBackend, backend_of
from brokerage.transfers.patience import StorageThreads
from brokerage.transfers.port import FileFault, NotRemovable, StoredCopy

BATCH = 500
LONGEST_S = 60.0
"""Time after which a run begins no further batch."""

LOOKS: StorageThreads[RootLook] = StorageThreads()


@agent("evict")
def evict(run: Run) -> int:
    """Remove copies: how many."""
    roots, end = storage_roots(), time.monotonic() + LONGEST_S
    lifetime_s = gdpconfig.value("transfers", "ONETIME_LIFETIME")
    while time.monotonic() < end and mark_expired(run.now, lifetime_s, run.who, BATCH).seen == BATCH:
        continue
    _mark_where_short(run, roots, end)
    removed, tried = 0, set(roots)
    while time.monotonic() < end and (storages := tried.intersection(storages_with_removals())):
        give_back(storages, lifetime_s, run.who, BATCH)
        copies = claim_removals(storages, run.claim_s, BATCH)
        if not copies:
            break
        gone, faulty = _removed(run, copies)
        removed += note_removed(gone, run.who)
        tried -= faulty
    return removed


def _mark_where_short(run: Run, roots: Mapping[str, StorageRoot | RemoteRoot], end: float) -> None:
    """Choose the oldest copies where less space is free than the watermark."""
    config = gdpconfig.component("transfers")
    works = {name: partial(look_at, roots[name]) for name in storages_with_caches() if name in roots}
    for name, look in LOOKS.run(works, config["REMOVAL_PATIENCE"]).items():
        if isinstance(look, Exception):
            run.leave(f"storage {name}", look)
        elif not look.fault and look.writable:
            short = bytes_short(config, name, look.free_gb, look.size_gb)
            why = f"{look.free_gb:.3g} GB are free at {name}, {look.free_gb + short / 1e9:.3g} are kept free"
            while short > 0 and time.monotonic() < end:
                batch = mark_oldest(name, short, run.now, config["ONETIME_LIFETIME"], run.who, why, BATCH)
                if batch.seen < BATCH:
                    break


def _removed(run: Run, copies: Sequence[DoomedCopy]) -> tuple[list[DoomedCopy], set[str]]:
    """Let what moves files remove copies: those that are gone, and the storages at which no further ones are to be tried now.

    What stands in the place of a log's plain file and cannot be removed holds up no log: it is told, and stays.
    """
    gone, faults = [copy for copy in copies if copy.shared], dict[StoredCopy, str]()
    of_vo: dict[str, list[DoomedCopy]] = defaultdict(list)
    for copy in copies:
        if not copy.shared:
            of_vo[copy.vo].append(copy)
    for vo, doomed in of_vo.items():
        stored = {copy: [StoredCopy(copy.storage, path) for path in (*copy.beside, copy.path)] for copy in doomed}
        places = [place for of_copy in stored.values() for place in of_copy]
        try:
            told = backend_of(vo).delete(places)
        except (NoBackend, OSError) as error:
            told = dict.fromkeys(places, str(error))
        gone += [copy for copy, of_copy in stored.items() if not any(_holds(told, place, copy) for place in of_copy)]
        faults |= told
    at: dict[str, list[str]] = defaultdict(list)
    for place, fault in faults.items():
        at[place.storage].append(fault)
    for name, wrong in at.items():
        run.leave(f"storage {name}", RuntimeError(f"{wrong[0]}" + (f", and {len(wrong) - 1} more" if wrong[1:] else "")))
    return gone, {place.storage for place, fault in faults.items() if not isinstance(fault, FileFault)}


def _holds(told: Mapping[StoredCopy, str], place: StoredCopy, copy: DoomedCopy) -> bool:
    """Whether what was told of this place of a copy keeps the copy."""
    return place in told and not (place.path in copy.beside and isinstance(told[place], NotRemovable))
