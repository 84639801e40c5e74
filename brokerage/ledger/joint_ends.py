"""Last words of jobs that reach a process at the same time are settled together, since one transaction for ten costs as much as
three alone.

Nobody waits for company: what comes while no other is being settled is settled at once, and what comes meanwhile goes together
in the next transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from brokerage.ledger.settle import LastWord, settle_jobs
from workqueues.ledger.moves import Stale

MOST = 32
"""Jobs in one transaction."""
PATIENCE_S = 0.1
"""So long a word waits for those before it; then it goes by itself, since a lock that they wait for may be none of its own."""

Settle = Callable[[Sequence[LastWord]], Sequence[str | Stale]]


@dataclass(slots=True, eq=False)
class _Party:
    """Words that came in one request, and what became of them: `leads` when it is to settle for those that wait."""

    words: Sequence[LastWord]
    ready: threading.Event = field(default_factory=threading.Event)
    leads: bool = False
    ends: Sequence[str | Stale] = ()
    fault: BaseException | None = None


@dataclass(slots=True)
class JointEnds:
    """What the threads of one process report. Threads wait for each other, never for another process."""

    settle: Settle = settle_jobs
    _waiting: list[_Party] = field(default_factory=list)
    _busy: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def end(self, words: Sequence[LastWord]) -> list[str | Stale]:
        """What `settle_jobs` gives for these words, or raises."""
        party = _Party(words)
        with self._lock:
            if self._busy:
                self._waiting.append(party)
            else:
                self._busy = party.leads = True
        if not party.leads and not party.ready.wait(PATIENCE_S):
            if self._withdraw(party):
                return list(self.settle(words))
            party.ready.wait()  # its words are being settled
        if party.leads:
            self._lead(party)
        if party.fault is not None:
            raise party.fault
        return list(party.ends)

    def _withdraw(self, party: _Party) -> bool:
        """Whether the party waits no more: nobody has begun with its words."""
        with self._lock:
            if party in self._waiting:
                self._waiting.remove(party)
                return True
        return False

    def _lead(self, first: _Party) -> None:
        """Settle for the first party and those that wait, then hand over to one that came meanwhile."""
        with self._lock:
            parties, jobs = [first], {word.job_id for word in first.words}
            for party in list(self._waiting):
                wanted = {word.job_id for word in party.words}
                if len(jobs) + len(wanted) <= MOST and not jobs & wanted:
                    self._waiting.remove(party)
                    parties.append(party)
                    jobs |= wanted
        try:
            ends = iter(self.settle([word for party in parties for word in party.words]))
            for party in parties:
                party.ends = [next(ends) for _ in party.words]
        except BaseException as fault:  # noqa: BLE001 - it belongs to all whose words these were
            for party in parties:
                party.fault = fault
        finally:
            for party in parties[1:]:
                party.ready.set()
            self._hand_over()

    def _hand_over(self) -> None:
        with self._lock:
            if self._waiting:
                heir = self._waiting.pop(0)
                heir.leads = True
                heir.ready.set()
            else:
                self._busy = False
