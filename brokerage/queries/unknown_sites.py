"""Names that are no sites of this grid."""

from __future__ import annotations

from collections.abc import Collection

from broker_site.foundation.sql.prepared import Prepared

_UNKNOWN = Prepared(
    "unknown_sites",
    "text[]",
    "SELECT n FROM unnest($1) AS n WHERE NOT EXISTS (SELECT FROM brokerage_site s WHERE s.name = n) ORDER BY 1",
)


def unknown_sites(names: Collection[str]) -> list[str]:
    """Those of the names that no site has, in their order."""
    return [name for (name,) in _UNKNOWN.run(list(names))]
