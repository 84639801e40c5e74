"""A backend that moves nothing and tells as if it did, for tests and the simulator: rates, failures, lost and doubled events.

Equal seeds give equal fates: each copy's depends on the seed and its key alone. It lives in one process, and its time is the one
that it is given. It is no backend of a system that runs: nobody declares it but tests.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from brokerage.rules.transfers.backoff import MB
from brokerage.transfers.port import CopyOrder, CopyReport, Refusal, StoredCopy


@dataclass(frozen=True, slots=True)
class Conditions:
    """How a simulated world is. Parts are of all copies; `reasons`: why those fail that do.

    `lost`: their end is never told, only found by asking; `doubled`: it is told once more after it was forgotten.
    """

    seed: int = 0
    mb_per_s: float = 100.0
    setup_s: float = 1.0
    failing: float = 0.0
    refused: float = 0.0
    lost: float = 0.0
    doubled: float = 0.0
    reasons: tuple[str, ...] = ("timeout", "unknown", "dst_full", "source_missing", "checksum")


@dataclass(slots=True)
class _Copy:
    order: CopyOrder
    due: float
    reason: str
    lost: bool
    doubled: bool
    cancelled: bool = False


@dataclass(slots=True)
class Simulated:
    """Copies that take the time that they would. `now`: seconds; `stored`: what stands where by now."""

    now: Callable[[], float]
    conditions: Conditions = field(default_factory=Conditions)
    name: str = "simulated"
    stored: set[StoredCopy] = field(default_factory=set)
    _copies: dict[UUID, _Copy] = field(default_factory=dict)
    _again: dict[UUID, CopyReport] = field(default_factory=dict)

    def submit(self, orders: Sequence[CopyOrder]) -> Mapping[UUID, Refusal]:
        """Begin them."""
        refused = {}
        for order in orders:
            dice = self._dice(order.key)
            world = self.conditions
            if dice.random() < world.refused:
                refused[order.key] = Refusal("unknown", "the simulated tool refused it")
            elif order.key not in self._copies:
                reason = dice.choice(world.reasons) if dice.random() < world.failing else ""
                rate = world.mb_per_s if order.mb_per_s is None else min(world.mb_per_s, order.mb_per_s)
                due = self.now() + world.setup_s * (0.5 + dice.random()) + order.bytes / (rate * MB)
                lost, doubled = dice.random() < world.lost, dice.random() < world.doubled
                self._copies[order.key] = _Copy(order, due, reason, lost, doubled)
        return refused

    def find(self, keys: Collection[UUID]) -> Mapping[UUID, CopyReport]:
        """How these are."""
        return {key: self._report(self._copies[key]) for key in keys if key in self._copies}

    def ended(self, most: int) -> Sequence[CopyReport]:
        """Ends whose events came through, some of them twice."""
        again, self._again = list(self._again.values()), {}
        return [*again, *self._told()][:most]

    def cancel(self, keys: Collection[UUID]) -> None:
        """Those that did not end yet leave nothing."""
        for key in keys:
            if (copy := self._copies.get(key)) and copy.due > self.now():
                copy.cancelled, copy.due = True, self.now()

    def forget(self, keys: Collection[UUID]) -> None:
        """Know no more of those that ended."""
        for key in keys:
            copy = self._copies.get(key)
            if copy is None or copy.due > self.now():
                continue
            report = self._report(copy)
            del self._copies[key]
            if copy.doubled:
                self._again[key] = report

    def delete(self, copies: Collection[StoredCopy]) -> Mapping[StoredCopy, str]:
        """They are gone."""
        self.stored -= set(copies)
        return {}

    def _told(self) -> Iterator[CopyReport]:
        for copy in sorted(self._copies.values(), key=lambda copy: (copy.due, copy.order.key)):
            if copy.due <= self.now() and not copy.lost:
                yield self._report(copy)

    def _report(self, copy: _Copy) -> CopyReport:
        order = copy.order
        if copy.due > self.now():
            return CopyReport(order.key, "under way")
        if copy.cancelled:
            return CopyReport(order.key, "failed", "operator", "it was cancelled")
        if copy.reason:
            return CopyReport(order.key, "failed", copy.reason, "so the dice of the simulated world fell")
        self.stored.add(StoredCopy(order.destination, order.destination_path))
        return CopyReport(order.key, "done", copied=order.bytes)

    def _dice(self, key: UUID) -> random.Random:
        return random.Random(f"{self.conditions.seed}/{key}")  # noqa: S311 - a simulated world
