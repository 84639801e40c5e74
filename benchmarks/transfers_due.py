"""What the agent of transfers asks in a run: where something is due, the heads of links, what is under way and overdue.

Ours with as many open requests as wanted, the reference with `FEW` of the same kind in a table of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial

from benchmarks.harness import Lap, Line, compare
from benchmarks.server import Bench, bench

FEW = 1000
RUNS = 100
LINKS, SHARES, ACTIVE = 20, 4, 8
"""Links and shares over which requests are spread, and how many of a link may be under way: less than wait there of the few."""
FEW_SCHEMA = "few"
FILL = """
INSERT INTO {table} (file_id, destination, destination_site, source, source_site, status, activity, priority, share,
    vo, bytes, checksum, express)
SELECT (SELECT id FROM workqueues_cataloguefile), 'D' || n, 'SITE' || n %% %s, 'S', 'SITE', 'queued', 'Datasets', n %% 7,
    'share' || n / %s %% %s, 'bench', 1, '1', false
FROM generate_series(1, %s) n
"""


def run(requests: int, rounds: int) -> Iterator[Line]:
    """A line for each round, then the result: looks of the agent in a second."""
    with bench() as server:
        _fill(server, requests)
        sizes = {"open": requests, "reference_open": FEW, "links": LINKS, "shares": SHARES}
        yield from compare(
            "transfers", "looks/s", partial(_looks, "public"), partial(_looks, f"{FEW_SCHEMA}, public"), sizes, rounds
        )


def _fill(server: Bench, requests: int) -> None:
    from broker_site.foundation.gdpconfig import set_override
    from brokerage.models import Site, StorageEndpoint
    from workqueues.models import CatalogueDataset, CatalogueFile

    set_override("transfers", "LINK_ACTIVE", ACTIVE, who="benchmark", why="both legs look at as many")
    for n in range(LINKS):
        StorageEndpoint.objects.create(name=f"D{n}", site=Site.objects.create(name=f"SITE{n}"), free_gb=50_000)
    dataset = CatalogueDataset.objects.create(vo="bench", name="due", state="closed")
    CatalogueFile.objects.create(dataset=dataset, lfn="due", fsize=1, checksum="00000001")
    table = f"{FEW_SCHEMA}.brokerage_transfer"
    server.execute(f"CREATE SCHEMA {FEW_SCHEMA}", f"CREATE TABLE {table} (LIKE brokerage_transfer INCLUDING ALL)")
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for name, n in (("brokerage_transfer", requests), (table, FEW)):
            cursor.execute(FILL.format(table=name), [LINKS, LINKS, SHARES, n])
    server.settle("brokerage_transfer", table)


def _looks(search_path: str) -> Lap:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(f"SET search_path TO {search_path}")
    began, cpu = time.monotonic(), time.process_time()
    for _ in range(RUNS):
        _look()
    return Lap(RUNS, time.monotonic() - began, time.process_time() - cpu)


def _look() -> None:
    """The questions of one run, up to what may begin."""
    from django.utils import timezone

    from broker_site.foundation import gdpconfig
    from broker_site.foundation.agency.run import Run
    from brokerage.agents.transfer_attempts import Attempts
    from brokerage.ledger.transfers.claims import claim_overdue

    claim_overdue(FEW, 1.0)
    run = Run("transfer", "benchmark", timezone.now(), 60.0)
    due = Attempts(run, gdpconfig.component("transfers"), {}).due(hindered_too=False)
    assert due is not None and due[2].begin
