"""Keys of the feeds of the grid: where they may come from, how often and how long they are asked for, how old they may be."""

from __future__ import annotations

from pathlib import PurePosixPath

from broker_site.foundation.gdpconfig.keys import Key, declare

_HOUR = 3600.0
_YEAR = 365 * 24 * _HOUR

AGES = {"QUEUES": 6 * _HOUR, "STORAGES": 6 * _HOUR, "RELEASES": 24 * _HOUR}
"""Subject of a feed -> age at which it is warned of."""


def _folders(value: object) -> str | None:
    paths = [PurePosixPath(str(item)) for item in value] if isinstance(value, list | tuple) else []
    wrong = [str(path) for path in paths if not path.is_absolute() or ".." in path.parts or len(path.parts) < 2]
    return f"{wrong[0]!r} is not an absolute folder without '..'" if wrong else None


for _subject, _warn in AGES.items():
    _what = {"QUEUES": "sites and queues", "STORAGES": "storage endpoints and their space", "RELEASES": "software"}[_subject]
    declare(
        Key(
            component="feeds",
            name=f"FEED_WARN_AGE_{_subject}",
            type="duration",
            default=_warn,
            low=0.05,
            high=_YEAR,
            doc=f"From this age on a feed of {_what} is marked as old; it is still used.",
            source="decision B14",
        ),
        Key(
            component="feeds",
            name=f"FEED_MAX_AGE_{_subject}",
            type="duration",
            default=48 * _HOUR,
            low=0.05,
            high=_YEAR,
            doc=f"When a feed of {_what} is older than this, production and analysis tasks wait.",
            source="decision B14",
        ),
    )

declare(
    Key(
        component="feeds",
        name="FEED_PERIOD",
        type="duration",
        default=200.0,
        low=0.05,
        high=86400.0,
        doc="How often each feed is read.",
        source="facts, agents 6 (configurator)",
    ),
    Key(
        component="feeds",
        name="FEED_TIMEOUT",
        type="duration",
        default=30.0,
        low=0.05,
        high=60.0,
        doc="The longest time that one reading of a feed may take, from connecting to the last byte.",
        source="issue Brokerage",
    ),
    Key(
        component="feeds",
        name="FEED_MAX_SIZE",
        type="size",
        default="100MB",
        low="1kB",
        high="1GB",
        doc="The largest document that a feed may give.",
        source="issue Brokerage",
    ),
    Key(
        component="feeds",
        name="FEED_MAX_LOSS",
        type="float",
        default=0.2,
        low=0.0,
        high=1.0,
        doc="The part of its known entries that a feed may no longer have at once; with more it is refused as a whole.",
        source="decision B15",
    ),
    Key(
        component="feeds",
        name="FEED_HOSTS",
        type="list",
        default=[],
        doc="Hosts that feeds may be read from: `name` (port 80 for http, 443 for https) or `name:port`. Others are refused, "
        "also after a redirection.",
        source="issue Brokerage",
    ),
    Key(
        component="feeds",
        name="FEED_FOLDERS",
        type="list",
        default=[],
        check=_folders,
        doc="Folders whose files may be feeds; links that lead out of them are refused.",
        source="issue Brokerage",
    ),
)
