"""Which input files of jobs that are about to be made cannot be read at their queue."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from django.db import connection

from brokerage.rules.placement.input_ways import InputWay
from workqueues.queries.read_grants import INPUT_IN_CATALOGUE

_MISSING = f"""
SELECT g.queue, g.file_id, f.dataset_id, t.id, d.attributes,
    EXISTS (SELECT FROM workqueues_replica r
        JOIN unnest(%(direct_queues)s::text[], %(direct)s::text[]) AS w(queue, storage)
            ON w.queue = g.queue AND w.storage = r.storage
        WHERE r.file_id = t.id AND r.state = 'available'),
    NOT EXISTS (SELECT FROM workqueues_replica r JOIN brokerage_storageendpoint e ON e.name = r.storage
        WHERE r.file_id = t.id AND r.state = 'available' AND NOT e.is_tape AND e.state = 'ACTIVE')
FROM unnest(%(queues)s::text[], %(files)s::bigint[]) AS g(queue, file_id)
    JOIN workqueues_file f ON f.id = g.file_id AND f.type = 'input' JOIN workqueues_dataset d ON d.id = f.dataset_id
    JOIN workqueues_cataloguedataset c ON {INPUT_IN_CATALOGUE}
    JOIN workqueues_cataloguefile t ON t.dataset_id = c.id AND t.lfn = f.lfn
WHERE NOT EXISTS (SELECT FROM workqueues_replica r
    JOIN unnest(%(read_queues)s::text[], %(read)s::text[]) AS w(queue, storage) ON w.queue = g.queue AND w.storage = r.storage
    WHERE r.file_id = t.id AND r.state = 'available')
"""


class MissingFile(NamedTuple):
    """An input file that is at no storage which jobs at the queue read.

    `file_id`: of the task, `catalogue_id`: of the catalogue; `direct`: it can be read from another site; `on_tape`: no disk has
    it.
    """

    queue: str
    file_id: int
    dataset_id: int
    catalogue_id: int
    attributes: str
    direct: bool
    on_tape: bool


def missing_files(uses: Collection[tuple[str, int]], ways: Mapping[str, InputWay]) -> list[MissingFile]:
    """Those of these (queue, input file) that are missing there, in one query. A file that the catalogue does not have is not
    among them: the job finds out.
    """
    reads = [(queue, storage) for queue, way in ways.items() for storage in way.reads]
    direct = [(queue, storage) for queue, way in ways.items() for storage in sorted(way.direct)]
    values: dict[str, list[str] | list[int]] = {
        "queues": [queue for queue, _ in uses],
        "files": [file_id for _, file_id in uses],
        "read_queues": [queue for queue, _ in reads],
        "read": [storage for _, storage in reads],
        "direct_queues": [queue for queue, _ in direct],
        "direct": [storage for _, storage in direct],
    }
    with connection.cursor() as cursor:
        cursor.execute(_MISSING, values)
        return [MissingFile(*row) for row in cursor.fetchall()]
