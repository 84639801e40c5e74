"""What counts, forgets and removes costs what it finds, not what was moved before: plans on tables with much history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import pytest
from django.db import connection

from broker_site.foundation.kernel.clock import now
from brokerage.ledger.transfers.caches import claim_removals, give_back, mark_expired, mark_oldest
from brokerage.ledger.transfers.figures import Caps, count_links, forget_ended
from brokerage.queries.cache_storages import storages_with_caches, storages_with_removals
from tests.builders import grid
from tests.ledger.plans import partial_indexes, plans

pytestmark = pytest.mark.django_db

FILES = 30_000
TABLES = ("brokerage_transfer", "brokerage_transferchange", "workqueues_replica", "workqueues_cataloguefile")


@pytest.fixture(autouse=True)
def history() -> None:
    """Files at ALPHA with a copy at BETA each, which transfers brought days ago; a hundred are on their way."""
    grid("ALPHA", "BETA")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO workqueues_cataloguedataset (name, state) VALUES ('dd', 'closed') RETURNING id")
        values = {"dataset": cursor.fetchone()[0], "n": FILES}
        for statement in (
            (
                "INSERT INTO workqueues_cataloguefile (dataset_id, lfn, fsize, checksum)"
                " SELECT %(dataset)s, 'dd.' || i, 1000, '00000001' FROM generate_series(1, %(n)s) i"
            ),
            "INSERT INTO workqueues_replica (file_id, storage) SELECT id, 'ALPHA_DISK' FROM workqueues_cataloguefile",
            (
                "INSERT INTO workqueues_replica (file_id, storage, kind, last_used, keep_until) SELECT id, 'BETA_DISK', 'cache',"
                " now() - id * interval '1 second', now() + id * interval '1 second' FROM workqueues_cataloguefile"
            ),
            (
                "INSERT INTO brokerage_transfer (file_id, destination, destination_site, source, source_site, status, activity,"
                " vo, bytes, checksum, attempt) SELECT id, 'BETA_DISK', 'SITE_BETA', 'ALPHA_DISK', 'SITE_ALPHA', 'queued',"
                " 'Production Input', 'demo', 1000, '00000001', 1 FROM workqueues_cataloguefile"
            ),
            "UPDATE brokerage_transfer SET status = 'done', ended_at = now() - file_id * interval '10 seconds'",
            (
                "INSERT INTO brokerage_transfer (file_id, destination, destination_site, source, source_site, status, activity,"
                " vo, bytes, checksum) SELECT id, 'C_DISK', 'SITE_BETA', 'ALPHA_DISK', 'SITE_ALPHA', 'queued',"
                " 'Production Input', 'demo', 1000, '00000001' FROM workqueues_cataloguefile ORDER BY id LIMIT 100"
            ),
            (
                "INSERT INTO brokerage_transferchange (transfer_id, old, new, who) SELECT id, 'queued', 'submitting', 'x'"
                " FROM brokerage_transfer WHERE status = 'done'"
            ),
        ):
            cursor.execute(statement, values)
        cursor.execute(f"ANALYZE {', '.join(TABLES)}")
    count_links(7 * 86400, Caps(300, 2000, 10000))


def test_nothing_reads_through_what_was_moved_before() -> None:
    rows: Mapping[str, float] = defaultdict(float, {table: float(FILES) for table in TABLES})
    for what, act in (
        ("counting", lambda: count_links(7 * 86400, Caps(300, 2000, 10000))),
        ("forgetting", lambda: forget_ended(7 * 86400, 10)),
        ("expired copies", lambda: mark_expired(now(), 60, "test", 10)),
        ("oldest copies", lambda: mark_oldest("BETA_DISK", 5000, now(), 60, "test", "space", 10)),
        ("given back", lambda: give_back(["BETA_DISK"], 60, "test", 10)),
        ("removals", lambda: claim_removals(["BETA_DISK"], 60, 10)),
        ("storages with copies", storages_with_caches),
        ("storages with removals", storages_with_removals),
    ):
        with plans() as found:
            act()
        assert found, what
        for plan in found:
            faults = plan.faults(rows, partial_indexes())
            assert not faults, f"{what}: {faults}: {plan.sql}"
