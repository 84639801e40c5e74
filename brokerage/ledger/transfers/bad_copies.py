"""Copies whose content is not what the catalogue says: nobody reads them any more."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

_BAD = """
WITH found AS (
    UPDATE workqueues_replica r SET state = 'bad' FROM unnest(%s::bigint[], %s::text[]) AS g(transfer_id, storage)
        JOIN brokerage_transfer t ON t.id = g.transfer_id
    WHERE r.file_id = t.file_id AND r.storage = g.storage AND r.state = 'available' RETURNING r.file_id, r.storage
)
INSERT INTO brokerage_replicachange (file_id, storage, what, who, why)
SELECT file_id, storage, 'bad', %s, 'it was read with another content more than once' FROM found
"""


def note_bad(copies: Sequence[tuple[int, str]], who: str) -> None:
    """The copies of the files of these transfers at these endpoints are damaged."""
    if copies:
        with connection.cursor() as cursor:
            cursor.execute(_BAD, [[id_ for id_, _ in copies], [storage for _, storage in copies], who[:128]])
