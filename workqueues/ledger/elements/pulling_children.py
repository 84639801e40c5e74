"""What is asked of children that pull together, as they are locked: one statement for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from broker_site.foundation.sql.prepared import Prepared, array_text
from workqueues.queries.speakers import COLUMNS, SPEAKERS, Speaker, speaker_of
from workqueues.queries.steered_elements import STEERED
from workqueues.states.elements import ELEMENT


class PullingChild(NamedTuple):
    """A locked child broker. `held` is counted as far as it matters."""

    credential: int
    speaker: Speaker
    team: str
    vo: str
    is_drained: bool
    answer: str | None
    """To a pull with this key, as JSON."""
    negotiating: int
    held: int
    steered: str | None
    """Elements that it should report, as JSON."""


_TYPES = "bigint[], uuid[], int"
_LOCK = f"""
SELECT c.credential_id, {COLUMNS}, c.team, c.vo, c.drain_since IS NOT NULL,
    CASE WHEN c.last_pull_key = said.key THEN (c.last_pull -> 'answer')::text END,
    (SELECT count(*) FROM workqueues_element WHERE child_id = c.id AND status = 'Negotiating'),
    (SELECT count(*) FROM (
        SELECT FROM workqueues_element WHERE child_id = c.id AND status IN ({ELEMENT.taken.sql}) LIMIT $3) AS held),
    (SELECT json_agg(s)::text FROM ({STEERED}) AS s)
FROM unnest($1, $2) AS said(credential, key) JOIN {SPEAKERS} ON c.credential_id = said.credential
ORDER BY c.id FOR NO KEY UPDATE OF c"""
_ONE = Prepared("pulling_child", _TYPES, _LOCK)
_FREE = Prepared("pulling_children", _TYPES, f"{_LOCK} SKIP LOCKED")
"""Who locks several waits for none of them, so that one keeps no others waiting, and no two who lock wait for each other."""


def lock_pulling(keys: Mapping[int, UUID], most_held: int) -> dict[int, PullingChild]:
    """The children with these credentials, that pull with these keys, by credential; locked. One whose token was revoked is
    not among them; nor, of several, one that another has locked.
    """
    rows = (_ONE if len(keys) == 1 else _FREE).run(array_text(keys), array_text(keys.values()), most_held)
    return {row[0]: PullingChild(row[0], speaker_of(row[1:8]), *row[8:]) for row in rows}
