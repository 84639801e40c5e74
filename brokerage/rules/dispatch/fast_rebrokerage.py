"""Fast rebrokerage: jobs of a share leave a queue where far more of them wait than run. Pure.

Source: seed 000, timeout rules, for the three thresholds; decision D3 for how many jobs go; H2: ratios are compared by
multiplication; facts on timeouts 4.3 for what is counted. Not here: which jobs go, the lowest ids of those that may
(`brokerage.queries.fast_rebrokerage`), and who closes them (`brokerage.ledger.rebrokering`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from broker_site.foundation.gdpconfig.values import pick
from brokerage.states import JOB

QUEUED = JOB.counted - {"running"}
"""States of the jobs that count as waiting and may go; one that was only sent counts as starting, and stays."""

BEGINNING = "fast rebrokerage"
"""How the reason begins that its jobs have in their history."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What the number of jobs that wait must exceed: `ratio` times those that run at the queue, the part `fraction` of all of the
    share that wait, and `limit`; None or 0: the share is exempt.
    """

    ratio: float
    fraction: float
    limit: int | None = None


def thresholds(share: str, config: Mapping[str, Any]) -> Thresholds:
    """The thresholds of a share. `config`: component rebroker."""
    return Thresholds(
        ratio=config["FAST_REBRO_THRESHOLD_NQNR_RATIO"],
        fraction=config["FAST_REBRO_THRESHOLD_NQUEUE_FRAC"],
        limit=pick(config, "FAST_REBRO_THRESHOLD_NQUEUE_<gshare>", gshare=share),
    )


def jobs_to_move(queued: int, running: int, total: int, over: Thresholds, *, has_slots: bool = False) -> int:
    """How many of the `queued` jobs of a share leave a queue where `running` run; 0 unless all three thresholds are exceeded.

    `total`: jobs of the share that wait anywhere; `has_slots`: slots are declared there, where many wait on purpose.
    """
    if not over.limit or has_slots:
        return 0
    least = max(_exact(over.ratio) * running, Fraction(over.limit), _exact(over.fraction) * total)
    return max(0, ceil(queued - least))


def _exact(number: float) -> Fraction:
    """The number as it is written: 0.3 is three tenths."""
    return Fraction(str(number))


@dataclass(frozen=True, slots=True)
class ShareAtQueue:
    """Jobs of a share at a queue. `has_slots`: slots are declared there; `suspended`: no time limit holds there."""

    queue_id: int
    queue: str
    vo: str
    share: str
    queued: int
    running: int
    has_slots: bool = False
    suspended: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """So many jobs of a share leave a queue; `why`: for the history of each."""

    queue_id: int
    vo: str
    share: str
    n: int
    why: str


def moves(places: Iterable[ShareAtQueue], limits: Mapping[tuple[str, str], Thresholds]) -> list[Move]:
    """What is to leave where. `limits`: by VO and share. Queues with declared slots are not counted in the total of a share."""
    totals: dict[tuple[str, str], int] = defaultdict(int)
    counted = [place for place in places if not place.has_slots]
    for place in counted:
        totals[place.vo, place.share] += place.queued
    found = []
    for place in counted:
        over, total = limits[place.vo, place.share], totals[place.vo, place.share]
        n = 0 if place.suspended else jobs_to_move(place.queued, place.running, total, over)
        if n:
            found.append(Move(place.queue_id, place.vo, place.share, n, _why(place, total, over)))
    return found


def _why(place: ShareAtQueue, total: int, over: Thresholds) -> str:
    return (
        f"{BEGINNING}: {place.queued} jobs of share {place.share} waited at {place.queue} where {place.running} ran, of {total} "
        f"in all; more than {over.ratio:g} x {place.running}, {over.fraction:g} x {total} and {over.limit}"
    )
