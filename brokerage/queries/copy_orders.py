"""What a backend has to know of a transfer whose attempt begins: the file, and where it lies at both ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from broker_site.foundation.sql.prepared import Prepared
from workqueues.rules.jobs.file_names import copy_path

_ORDERS = Prepared(
    "transfer_orders",
    "bigint[]",
    """
    SELECT t.id, t.key, t.source, t.source_site, t.destination, t.destination_site, t.bytes, t.checksum, t.priority, t.express,
        t.activity, t.tape, t.backend, c.lfn, d.folder, d.vo, d.name, r.path
    FROM brokerage_transfer t JOIN workqueues_cataloguefile c ON c.id = t.file_id
        JOIN workqueues_cataloguedataset d ON d.id = c.dataset_id
        LEFT JOIN workqueues_replica r ON r.file_id = t.file_id AND r.storage = t.source AND r.state = 'available'
    WHERE t.id = ANY($1) AND t.status = 'submitting' ORDER BY t.express DESC, t.priority DESC, t.id
    """,
)


class OrderFacts(NamedTuple):
    """An attempt. `source_path`: None where the copy is not there any more."""

    id: int
    key: UUID
    source: str
    source_site: str
    source_path: str | None
    destination: str
    destination_site: str
    destination_path: str
    bytes: int
    checksum: str
    priority: int
    express: bool
    activity: str
    tape: bool
    backend: str


def order_facts(transfers: Sequence[int]) -> list[OrderFacts]:
    """Those of these transfers that are being submitted, the most urgent first."""
    return [
        OrderFacts(
            id_, key, source, source_site, None if path is None else path or lfn, destination, site,
            copy_path(folder, vo, dataset, lfn), size, checksum, priority, express, activity, tape, backend,
        )
        for id_, key, source, source_site, destination, site, size, checksum, priority, express, activity, tape, backend, lfn,
            folder, vo, dataset, path in _ORDERS.run(list(transfers))
    ]  # fmt: skip
