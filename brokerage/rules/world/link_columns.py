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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brokerage.rules.facts.network import latest
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.grid.queue_columns import TO_NUCLEUS

MOST_AGE = {"1h": timedelta(hours=1), "1d": timedelta(days=1), "1w": timedelta(days=7)}
"""How old a throughput may be (decision B14)."""


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
            "link_files": np.array([files for files, _, _ in links], dtype=np.int64)[self._at],
            "mbps": np.array([mbps for _, mbps, _ in links], dtype=np.float64)[self._at],
            "closeness": np.array([closeness for _, _, closeness in links], dtype=np.float64)[self._at],
        }

    def _link(self, source: str, nucleus: str, activity: str) -> tuple[int, float, float]:
        """Files that wait, throughput and closeness of a link; not a number where that is not known."""
        files, closeness = 0, nan
        fresh: dict[str, float | None] = dict.fromkeys(MOST_AGE)
        for entry in self._links.get((source, nucleus), ()):
            age = _age(entry, self.now)
            if entry["activity"] == activity and age <= MOST_AGE["1h"]:
                files = entry["files_queued"]
            for window, oldest in MOST_AGE.items():
                if age <= oldest and (mbps := entry["mbps"].get(window)) is not None:
                    fresh[window] = float(mbps)
            closeness = closeness if entry["closeness"] is None else float(entry["closeness"])
        throughput = latest(*fresh.values())
        return files, nan if throughput is None else throughput, closeness


def files_to_nuclei(links: Iterable[Mapping[str, Any]], now: datetime) -> Mapping[str, int]:
    """Nucleus -> output files on their way to it from everywhere, by what was measured within the hour (facts 1)."""
    files: dict[str, int] = defaultdict(int)
    for link in links:
        if link["activity"] in TO_NUCLEUS and _age(link, now) <= MOST_AGE["1h"]:
            files[link["to"]] += link["files_queued"]
    return files


def _age(link: Mapping[str, Any], now: datetime) -> timedelta:
    return timedelta(0) if link["at"] is None else now - link["at"]
