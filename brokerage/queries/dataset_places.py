"""How far datasets are where they are wanted: at the nucleus that collects them, and at their destination."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from django.db import DEFAULT_DB_ALIAS, connections

_PLACES = """
SELECT d.id, p.storage, p.role, count(c.id) FILTER (WHERE NOT c.moving OR c.alive),
    count(c.id) FILTER (WHERE c.there), count(c.id) FILTER (WHERE NOT c.there AND c.comes),
    count(c.id) FILTER (WHERE NOT c.there AND NOT c.comes AND c.failed)
FROM workqueues_dataset d
    CROSS JOIN LATERAL (
        SELECT d.collected_at, 'nucleus' UNION ALL SELECT unnest(d.also_at), 'nucleus'
        UNION ALL SELECT d.destination, 'destination'
    ) AS p(storage, role)
    LEFT JOIN brokerage_storageendpoint near ON near.name = p.storage
    LEFT JOIN workqueues_cataloguedataset cd ON cd.name = d.dataset_name AND cd.vo = d.vo
    LEFT JOIN LATERAL (
        SELECT c.id, c.moving,
            EXISTS (SELECT FROM workqueues_replica r WHERE r.file_id = c.id AND r.state = 'available') AS alive,
            EXISTS (
                SELECT FROM workqueues_replica r LEFT JOIN brokerage_storageendpoint e ON e.name = r.storage
                WHERE r.file_id = c.id AND r.state = 'available'
                    AND (r.storage = p.storage OR p.role = 'nucleus' AND d.storage_token = '' AND e.site_id = near.site_id)
            ) AS there,
            EXISTS (
                SELECT FROM brokerage_transfer t
                WHERE t.file_id = c.id AND t.destination = p.storage AND t.ended_at IS NULL) AS comes,
            EXISTS (
                SELECT FROM brokerage_transfer t
                WHERE t.file_id = c.id AND t.destination = p.storage AND t.status = 'failed') AS failed
        FROM workqueues_cataloguefile c WHERE c.dataset_id = cd.id) c ON TRUE
WHERE d.id = ANY(%s) AND p.storage <> '' GROUP BY 1, 2, 3 ORDER BY 1, 3 DESC, 2
"""
"""What jobs at the nucleus wrote to a storage of their own is there, unless the task asked for one by a token."""


class PlaceOfDataset(NamedTuple):
    """How much of a dataset is at a storage endpoint where it is wanted. `failed`: files that were tried in vain."""

    storage: str
    role: Literal["nucleus", "destination"]
    files: int
    there: int
    on_the_way: int
    failed: int

    @property
    def complete(self) -> bool:
        """Whether every file that the dataset has now is there."""
        return self.there == self.files > 0


def dataset_places(dataset_ids: Collection[int], using: str = DEFAULT_DB_ALIAS) -> Mapping[int, Sequence[PlaceOfDataset]]:
    """The places of outputs by dataset; those that stay where they are made have none. The cost grows with their files."""
    places: dict[int, list[PlaceOfDataset]] = defaultdict(list)
    with connections[using].cursor() as cursor:
        cursor.execute(_PLACES, [list(dataset_ids)])
        for dataset_id, *columns in cursor.fetchall():
            places[dataset_id].append(PlaceOfDataset(*columns))
    return places
