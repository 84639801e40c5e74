"""The groups by which jobs are counted, each with its number."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from django.db import connection


class Group(NamedTuple):
    """The columns of TallyGroup; those that its family does not count by are empty."""

    family: str
    vo: str
    queue: str
    share: str
    kind: int
    user_name: str
    fingerprint: int


NO_GROUP = Group("", "", "", "", 0, "", 0)
_COLUMNS = ", ".join(Group._fields)
_ASKED = "unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::smallint[], %s::text[], %s::bigint[])"
_KNOWN = f"SELECT id, {_COLUMNS} FROM brokerage_tallygroup JOIN {_ASKED} AS asked({_COLUMNS}) USING ({_COLUMNS})"
_NEW = f"INSERT INTO brokerage_tallygroup ({_COLUMNS}) SELECT * FROM {_ASKED} RETURNING id, {_COLUMNS}"


def ids_of(groups: Collection[Group]) -> dict[Group, int]:
    """The numbers of these groups; those that are new get one. To be called by who holds the mark."""
    if not groups:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN, _columns(groups))
        known = {Group(*columns): id_ for id_, *columns in cursor.fetchall()}
        if new := sorted(group for group in set(groups) if group not in known):
            cursor.execute(_NEW, _columns(new))
            known |= {Group(*columns): id_ for id_, *columns in cursor.fetchall()}
    return known


def _columns(groups: Collection[Group]) -> list[list[str | int]]:
    return list(map(list, zip(*groups, strict=True)))
