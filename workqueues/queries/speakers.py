"""Which child broker sends a message, and which broker hears it: one statement for each message, or for several."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from broker_site.foundation.sql.prepared import Prepared

COLUMNS = """c.id, c.name, c.instance::text, c.incarnation::text, i.instance::text, i.incarnation::text,
    (SELECT lineage::text FROM workqueues_parentbroker ORDER BY id LIMIT 1)"""
"""What `speaker_of` reads of children `c` whose token is good, and of this broker `i`, as SPEAKERS joins them."""
SPEAKERS = """workqueues_childbroker c JOIN access_credential k ON k.id = c.credential_id AND k.revoked_at IS NULL
LEFT JOIN LATERAL (SELECT instance, incarnation FROM workqueues_installation ORDER BY id LIMIT 1) i ON TRUE"""
_SPEAKER = Prepared("speaking_child", "bigint", f"SELECT {COLUMNS} FROM {SPEAKERS} WHERE c.credential_id = $1")


class Speaker(NamedTuple):
    """A child broker, who it was when it last spoke, and who hears it: instance and incarnation, None before anything was
    written of either; and the instances above this broker, its parent first.
    """

    id: int
    name: str
    known: tuple[UUID, UUID] | None
    here: tuple[UUID, UUID] | None
    above: Sequence[UUID]


def speaker(credential: int) -> Speaker | None:
    """The child broker with this credential; None where there is none, or it was revoked."""
    rows = _SPEAKER.run(credential)
    return speaker_of(rows[0]) if rows else None


def speaker_of(row: Sequence[Any]) -> Speaker:
    """The child broker of a row of COLUMNS."""
    id_, name, instance, incarnation, our_instance, our_incarnation, lineage = row
    known = (UUID(instance), UUID(incarnation)) if instance and incarnation else None
    here = (UUID(our_instance), UUID(our_incarnation)) if our_instance else None
    return Speaker(id_, name, known, here, [UUID(str(one)) for one in json.loads(lineage or "[]")])
