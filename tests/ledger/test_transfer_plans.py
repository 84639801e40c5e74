"""What is due is found at the heads of links by an index, however much is queued."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.db import connection
from django.http import QueryDict

from broker_site.foundation.access.permissions import VoScope
from brokerage.queries.transfer_room import _HEADS, _LINKS, due_links, heads
from brokerage.rules.transfers.room import Way
from monitoring.queries.data_facets import transfer_facets
from monitoring.tables.selection import read as selected
from tests.builders import catalogue_dataset, grid
from tests.ledger.plans import plans

pytestmark = pytest.mark.django_db

QUEUED, LINKS, SHARES = 20_000, 20, 4
FILL = """
INSERT INTO brokerage_transfer (file_id, destination, destination_site, source, source_site, status, activity, priority, share,
    vo, bytes, checksum, express)
SELECT %s, 'D' || n, 'SITE' || n %% %s, 'S', 'SITE', 'queued', 'Datasets', n %% 7, 'share' || n %% %s,
    'demo', 1, '1', n %% 1000 = 0
FROM generate_series(1, %s) n
"""


def read(statement: str, values: list[Any]) -> int:
    """How many rows of transfers, or entries of their indexes, a statement reads when it runs."""
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) " + statement, values)
        nodes, total = [cursor.fetchone()[0][0]["Plan"]], 0
    while nodes:
        node = nodes.pop()
        nodes += node.get("Plans", [])
        if node.get("Relation Name") == "brokerage_transfer":
            assert node.get("Index Name") == "transfer_due", node["Node Type"]
            total += round((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
    return total


def test_only_the_heads_of_links_are_read() -> None:
    grid("ALPHA")
    dataset = catalogue_dataset("d", 1)
    with connection.cursor() as cursor:
        cursor.execute(FILL, [dataset.files.get().id, LINKS, SHARES, QUEUED])
        cursor.execute("ANALYZE brokerage_transfer")
    ways = due_links()
    assert sorted(way.destination for way in ways) == sorted(f"SITE{n}" for n in range(LINKS))
    assert read(_LINKS, []) <= LINKS
    found = heads({(way, express): 5 for way in ways for express in (True, False)})
    asked = [["SITE"] * 2 * LINKS, [f"SITE{n}" for n in range(LINKS)] * 2, [True] * LINKS + [False] * LINKS, [5] * 2 * LINKS]
    assert read(_HEADS, asked) <= len(found) + 2 * 2 * LINKS * SHARES
    per_share = Counter((one.way, one.share) for one in found if not one.express)
    assert set(per_share.values()) == {5}
    assert {one.way for one in found if one.express} == {Way("SITE", "SITE0")}


def test_facets_look_at_the_newest_by_an_index_and_say_that_there_are_more() -> None:
    grid("ALPHA")
    with connection.cursor() as cursor:
        cursor.execute(FILL, [catalogue_dataset("d", 1).files.get().id, LINKS, SHARES, QUEUED])
        cursor.execute("ANALYZE brokerage_transfer")
        cursor.execute("UPDATE brokerage_transfer SET vo = 'small' WHERE id < (SELECT min(id) + 10 FROM brokerage_transfer)")
        cursor.execute("ANALYZE brokerage_transfer")
    for names, wanted, queued in (
        ((), "brokerage_transfer_pkey", (5_001, True)),
        (("small",), "transfer_list_by_vo", (10, False)),
    ):
        with plans() as found:
            told = transfer_facets(VoScope(not names, frozenset(names)), selected(QueryDict("")))
        facets = {facet.name: [(value.name, value.n, value.more) for value in facet.values] for facet in told}
        assert {index for plan in found for index in plan.indexes()} == {wanted}
        assert facets["status"][0] == ("queued", *queued)
        assert facets["status"][1:2] == ([] if names else [("submitting", None, False)])
