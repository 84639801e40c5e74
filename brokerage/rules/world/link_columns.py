"""What lies between the queues and a nucleus: files that wait, throughput and closeness, as columns.

A link begins at the site of the queue's output storage. Here: choosing what of the measurements holds. Not here: the weight
made of it (`network`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import chain
from math import nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from brokerage.rules.facts.network import latest
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.grid.queue_columns import TO_NUCLEUS

MOST_AGE = {"1h": timedelta(hours=1), "1d": timedelta(days=1), "1w": timedelta(days=7)}
"""How old a throughput may be (decision B14)."""


FEED = "feed"
"""Where a number comes from of which nothing else is told."""


class _Link(NamedTuple):
    """What is known of a link, where the numbers come from (empty: there are none), and why it is blocked, if that is told."""

    files: int
    mbps: float
    closeness: float
    origin: str
    rate_origin: str
    why: str


class LinkColumns:
    """The links of a grid document, for the queues of a table."""

    def __init__(self, links: Iterable[Mapping[str, Any]], queues: Queues, now: datetime) -> None:
        self.now = now
        self._links: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
        for link in links:
            self._links[link["from"], link["to"]].append(link)
        self._queued = files_to_nuclei(chain.from_iterable(self._links.values()), now)
        self._sources, self._at = np.unique(queues.source_site, return_inverse=True)

    def to(self, nucleus: str, activity: str) -> dict[str, NDArray[Any]]:
        """The columns for one nucleus and one activity of transfers."""
        links = [self._link(source, nucleus, activity) for source in self._sources.tolist()]
        return {
            "nucleus_files": np.full(len(self._at), self._queued.get(nucleus, 0), dtype=np.int64),
            "link_files": np.array([link.files for link in links], dtype=np.int64)[self._at],
            "link_origin": np.array([link.origin for link in links], dtype=np.str_)[self._at],
            "link_why": np.array([link.why for link in links], dtype=np.str_)[self._at],
            "mbps": np.array([link.mbps for link in links], dtype=np.float64)[self._at],
            "mbps_origin": np.array([link.rate_origin for link in links], dtype=np.str_)[self._at],
            "closeness": np.array([link.closeness for link in links], dtype=np.float64)[self._at],
        }

    def _link(self, source: str, nucleus: str, activity: str) -> _Link:
        """Files that wait, throughput and closeness of a link; not a number where that is not known."""
        files, closeness = 0, nan
        origin = why = ""
        fresh: dict[str, float | None] = dict.fromkeys(MOST_AGE)
        measured_by = dict.fromkeys(MOST_AGE, "")
        for entry in self._links.get((source, nucleus), ()):
            age = age_of(entry, self.now)
            if entry["activity"] == activity and age <= MOST_AGE["1h"]:
                files, origin = entry["files_queued"], entry.get("origin") or FEED
            for window, oldest in MOST_AGE.items():
                if age <= oldest and (mbps := entry["mbps"].get(window)) is not None:
                    fresh[window], measured_by[window] = float(mbps), entry.get("rate_origin") or FEED
            why = entry.get("why") or why
            closeness = closeness if entry["closeness"] is None else float(entry["closeness"])
        throughput = latest(*fresh.values())
        rate_origin = next((measured_by[window] for window in MOST_AGE if fresh[window] is not None), "")
        return _Link(files, nan if throughput is None else throughput, closeness, origin, rate_origin, why)


def files_to_nuclei(links: Iterable[Mapping[str, Any]], now: datetime) -> Mapping[str, int]:
    """Nucleus -> output files on their way to it from everywhere, by what was measured within the hour (facts 1)."""
    files: dict[str, int] = defaultdict(int)
    for link in links:
        if link["activity"] in TO_NUCLEUS and age_of(link, now) <= MOST_AGE["1h"]:
            files[link["to"]] += link["files_queued"]
    return files


def age_of(link: Mapping[str, Any], now: datetime) -> timedelta:
    """How old a measurement is; without a time it always counts as fresh."""
    return timedelta(0) if link["at"] is None else now - link["at"]
