"""Groups of elements that ask the same of brokers and sites (decision J6)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from hashlib import sha256
from typing import NamedTuple

from django.db import connection
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from workqueues.models import Element, ElementGroup


class GroupKey(NamedTuple):
    """What the elements of a group have in common; sites in the order of their names."""

    vo: str
    team: str
    sites: tuple[str, ...]

    @property
    def digest(self) -> str:
        return sha256("\x1f".join((self.vo, self.team, *self.sites)).encode()).hexdigest()


_KEEP = """
INSERT INTO workqueues_elementgroup AS g (digest, vo, team, sites)
SELECT k.digest, k.vo, k.team, string_to_array(k.sites, chr(31))
FROM unnest(%(digests)s::text[], %(vos)s::text[], %(teams)s::text[], %(sites)s::text[]) AS k(digest, vo, team, sites)
ORDER BY k.digest
ON CONFLICT (digest) DO UPDATE SET used_at = now() RETURNING g.digest, g.id
"""


def groups(keys: Collection[GroupKey]) -> Mapping[GroupKey, int]:
    """The groups, made where they are not there yet, locked in the caller's transaction: nobody removes them meanwhile."""
    by_digest = {key.digest: key for key in keys}
    ordered = sorted(by_digest)
    with connection.cursor() as cursor:
        cursor.execute(
            _KEEP,
            {
                "digests": ordered,
                "vos": [by_digest[digest].vo for digest in ordered],
                "teams": [by_digest[digest].team for digest in ordered],
                "sites": ["\x1f".join(by_digest[digest].sites) for digest in ordered],
            },
        )
        return {by_digest[digest]: id_ for digest, id_ in cursor.fetchall()}


def remove_empty_groups(limit: int, empty_s: float) -> int:
    """Remove groups in which no element waits, and to which none came for so long: how many."""
    unused = ElementGroup.objects.filter(used_at__lt=Now() - timedelta(seconds=empty_s))
    unused = unused.exclude(Exists(Element.objects.filter(group=OuterRef("id"), status="Available")))
    ids = list(unused.order_by("id").values_list("id", flat=True)[:limit])
    removed, _ = ElementGroup.objects.filter(id__in=ids, used_at__lt=Now() - timedelta(seconds=empty_s)).delete()
    return removed
