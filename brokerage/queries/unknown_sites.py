"""Names that are no sites of this grid."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field

from broker_site.foundation.sql.prepared import Prepared

_UNKNOWN = Prepared(
    "unknown_sites",
    "text[]",
    "SELECT n FROM unnest($1) AS n WHERE NOT EXISTS (SELECT FROM brokerage_site s WHERE s.name = n) ORDER BY 1",
)
KNOWN_S = 60.0
"""How long a process takes a name that a site had for that of a site. Sites are hardly ever removed."""
MOST_KNOWN = 20_000


@dataclass(slots=True)
class SiteNames:
    """Names that sites have, in the memory of this process: children name theirs with every pull."""

    _known: dict[str, float] = field(default_factory=dict)
    """Until when (monotonic seconds)."""

    def unknown(self, names: Collection[str]) -> list[str]:
        """Those of the names that no site has, in their order."""
        now = time.monotonic()
        asked = [name for name in names if self._known.get(name, now) <= now]
        unknown = [name for (name,) in _UNKNOWN.run(asked)] if asked else []
        if len(self._known) + len(asked) > MOST_KNOWN:
            self.forget()
        self._known.update(dict.fromkeys(set(asked) - set(unknown), now + KNOWN_S))
        return unknown

    def forget(self) -> None:
        """Ask for every name anew."""
        self._known.clear()


SITE_NAMES = SiteNames()
