"""The keys of gdpconfig itself."""

from __future__ import annotations

from broker_site.foundation.gdpconfig.keys import Key, declare

declare(
    Key(
        component="gdpconfig",
        name="CACHE_PERIOD",
        type="duration",
        default="1s",
        low=0,
        high="2s",
        doc="How long a process uses its copy of the configuration before it asks the database whether the revision has changed. "
        "A change of any key is seen everywhere after at most this time. 0 asks at every reading.",
        source="mission J28",
    ),
)
