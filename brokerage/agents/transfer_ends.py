"""Part of the agent transfer: what the ends of attempts mean for transfers and links."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from broker_site.foundation.agency.batches import in_halves
from broker_site.foundation.agency.run import Run
from brokerage.ledger.transfers.bad_copies import note_bad
from brokerage.ledger.transfers.claims import Keyed, by_key
from brokerage.ledger.transfers.ends import end_unmet, finish
from brokerage.ledger.transfers.link_counts import count_attempts
from brokerage.ledger.transfers.moves import TransferMove
from brokerage.ledger.transfers.rests import try_again
from brokerage.rules.transfers.attempts import after_failure, known_reason
from brokerage.rules.transfers.link_health import OF_THE_LINK
from brokerage.rules.transfers.room import Way
from brokerage.states import TRANSFER
from brokerage.transfers.port import CopyReport

logger = logging.getLogger(__name__)

Work = Callable[[Sequence[TransferMove]], list[Any]]


class Ends:
    """The attempts that one run of the agent sees end. `unsettled`: keys of those that could not be written down."""

    def __init__(self, run: Run, config: Mapping[str, Any]) -> None:
        self._run, self._config = run, config
        self._done: Counter[Way] = Counter()
        self._failed: Counter[Way] = Counter()
        self.unsettled: set[UUID] = set()

    def settle(self, reports: Sequence[CopyReport]) -> int:
        """Write down how copies ended: how many transfers moved. One of which no transfer is under way changes nothing."""
        transfers = by_key([report.key for report in reports]) if reports else {}
        known = {report.key: report for report in reports if report.key in transfers}
        done = [key for key, report in known.items() if report.state == "done"]
        self._done.update(_way(transfers[key]) for key in done)
        moved = self._apply(
            [TransferMove(transfers[key].id, "it was copied", key=key) for key in done], lambda m: finish(m, self._run.who)
        )
        failed = {key: (report.reason, report.message) for key, report in known.items() if report.state == "failed"}
        return moved + self.fail([transfers[key] for key in failed], failed)

    def lose(self, keys: Sequence[UUID]) -> int:
        """Attempts that a backend had and does not know any more have failed: how many transfers moved."""
        return self.fail(
            list(by_key(keys).values()), dict.fromkeys(keys, ("unknown", "what copies it does not know it any more"))
        )

    def time_out(self, keys: Sequence[UUID]) -> int:
        """Attempts of which nothing is heard for too long have failed: how many transfers moved."""
        transfers = list(by_key(keys).values())
        return self.fail(transfers, dict.fromkeys(keys, ("timeout", "it took too long")))

    def fail(self, transfers: Sequence[Keyed], reasons: Mapping[UUID, tuple[str, str]]) -> int:
        """Attempts failed, for reasons by key: the next try, or the end."""
        again: list[TransferMove] = []
        over: list[TransferMove] = []
        cancelled: list[TransferMove] = []
        bad: list[tuple[int, str]] = []
        for one in transfers:
            key = one.attempt.key
            if key is None:
                continue
            reason, why = known_reason(reasons[key][0]), reasons[key][1]
            step = after_failure(one.attempt, reason, self._config)
            if reason in OF_THE_LINK:
                self._failed[_way(one)] += 1
            if step.bad_source:
                bad.append((one.id, one.attempt.source))
            move = TransferMove(one.id, why, key=key, reason=step.reason, wait_s=step.wait_s, failed_source=step.failed_source)
            (cancelled if reason == "operator" else over if step.over else again).append(move)
        note_bad(bad, self._run.who)
        who = self._run.who
        moved = self._apply(again, lambda m: try_again(m, who))
        moved += self._apply(over, lambda m: end_unmet(m, "failed", who))
        return moved + self._apply(cancelled, lambda m: end_unmet(m, "cancelled", who, sources=list(TRANSFER.active)))

    def count_links(self) -> None:
        """Tell the links what became of the attempts on them."""
        ways = {way for way in (*self._done, *self._failed) if way.source != way.destination}
        if ways:
            for told in count_attempts({way: (self._done[way], self._failed[way]) for way in ways}, self._config):
                logger.warning("%s", told)

    def _apply(self, moves: Sequence[TransferMove], work: Work) -> int:
        """Write moves down; one that cannot be is left, and its key not forgotten."""

        def leave(move: TransferMove, error: Exception) -> None:
            self._run.leave(f"transfer {move.id}", error)
            if move.key is not None:
                self.unsettled.add(move.key)

        return sum(map(len, in_halves(moves, work, leave, group=lambda move: move.id)))


def _way(one: Keyed) -> Way:
    return Way(one.source_site, one.destination_site)
