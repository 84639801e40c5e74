"""Why an attempt to bring a file failed, or a transfer ended: a closed list (facts on data movement 5.11), and what follows."""

from __future__ import annotations

from broker_site.foundation.kernel.machine import Names

ENDS = Names("no_source quota refused expired no_wish operator")
"""The transfer is over."""

OTHER_SOURCE = Names("source_missing source_corrupt checksum")
"""The next attempt is made from another source."""

WAITS = Names("dst_full dst_down src_down link_blocked link_full auth timeout unknown")
"""The same is tried again later."""

UNREADABLE = Names("no_source source_missing source_corrupt")
"""What was to be brought cannot be read anywhere: a transfer that ends so says so of its file."""

SEEN = "seen"
"""Somebody else brought the file: a look into the catalogue found it."""

REASONS = ENDS | OTHER_SOURCE | WAITS | (SEEN,)
