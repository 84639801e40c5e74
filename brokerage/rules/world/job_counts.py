"""The jobs of a grid document counted for its queues: by share and state, and by user.

The entries become arrays once; what a share or a user has is then a sum over them. Here: counting. Not here: what the counts
mean (`snapshot`), and joining them to the queues (`world`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brokerage.rules.facts.columns import Ints
from brokerage.rules.facts.snapshot import JOBS
from brokerage.states import COUNTED_AS

TRANSFERRING = "transferring"
COUNTED = COUNTED_AS | {TRANSFERRING: TRANSFERRING}
"""Status of a job -> the column in which it counts."""

_COLUMNS = (*JOBS, TRANSFERRING)
_WAITING = [JOBS.index("activated"), JOBS.index("starting")]
_RUNNING = JOBS.index("running")

JobEntry = Mapping[str, Any]


class JobCounts:
    """The jobs that have not ended. `rows_at`: for each row of the table the place of its queue among `queues`.

    `stuck` says of a nucleus that it cannot take output now: what waits for it says nothing of the queue.
    """

    def __init__(self, jobs: Iterable[JobEntry], queues: Sequence[str], rows_at: Ints, stuck: Callable[[str], bool]) -> None:
        self.rows_at, self.stuck = rows_at, stuck
        self._places = {name: i for i, name in enumerate(queues)}
        self._jobs = [job for job in jobs if job["status"] in COUNTED and job["queue"] in self._places]

    def of_share(self, share: str | None) -> dict[str, Ints]:
        """Jobs of a share (None = of all) in the columns of the table, and those of the others."""
        everywhere = self._totals
        mine = everywhere if share is None else self._sums(self._shares == self._share_codes.get(share, -1))
        others = everywhere - mine
        columns = {state: mine[i][self.rows_at] for i, state in enumerate(JOBS)}
        columns["others_waiting"] = others[_WAITING].sum(axis=0)[self.rows_at]
        columns["others_running"] = others[_RUNNING][self.rows_at]
        columns[TRANSFERRING] = self._transferring[self.rows_at]
        return columns

    def users(self, share: str | None) -> Ints:
        """How many users have jobs of the share at each queue."""
        named = self._users >= 0
        if share is not None:
            named &= self._shares == self._share_codes.get(share, -1)
        pairs = np.unique(self._users[named] * len(self._places) + self._queues[named])
        count = len(self._places)
        return np.bincount(pairs % max(count, 1), minlength=count).astype(np.int64)[self.rows_at]

    def of_user(self, user: str, share: str | None) -> dict[str, Ints]:
        """Waiting and running jobs of a user and share; nothing where there are none."""
        counts: dict[str, Ints] = {}
        for job in self._by_user.get(user, ()):
            if not share or job["share"] == share:
                column = "user_running" if job["status"] == "running" else "user_queued"
                sums = counts.setdefault(column, np.zeros(len(self._places), dtype=np.int64))
                sums[self._places[job["queue"]]] += job["n"]
        return {column: sums[self.rows_at] for column, sums in counts.items()}

    def _sums(self, chosen: NDArray[np.bool_]) -> Ints:
        """States x queues: the jobs of the chosen entries."""
        count = len(self._places)
        at = self._states[chosen] * count + self._queues[chosen]
        sums = np.bincount(at, weights=self._n[chosen], minlength=len(_COLUMNS) * count)
        return sums.astype(np.int64).reshape(len(_COLUMNS), count)

    @cached_property
    def _totals(self) -> Ints:
        return self._sums(np.ones(len(self._jobs), dtype=np.bool_))

    @cached_property
    def _transferring(self) -> Ints:
        nuclei, codes = _coded(job["nucleus"] for job in self._jobs)
        moving = np.array([not (name and self.stuck(name)) for name in nuclei], dtype=np.bool_)
        chosen = moving[codes] if len(codes) else np.zeros(0, dtype=np.bool_)
        sums: Ints = self._sums(chosen)[_COLUMNS.index(TRANSFERRING)]
        return sums

    @cached_property
    def _queues(self) -> Ints:
        return _ints(self._places[job["queue"]] for job in self._jobs)

    @cached_property
    def _states(self) -> Ints:
        places = {status: _COLUMNS.index(column) for status, column in COUNTED.items()}
        return _ints(places[job["status"]] for job in self._jobs)

    @cached_property
    def _n(self) -> Ints:
        return _ints(job["n"] for job in self._jobs)

    @cached_property
    def _share_codes(self) -> Mapping[str, int]:
        return {share: i for i, share in enumerate(dict.fromkeys(job["share"] for job in self._jobs))}

    @cached_property
    def _shares(self) -> Ints:
        return _ints(self._share_codes[job["share"]] for job in self._jobs)

    @cached_property
    def _users(self) -> Ints:
        """A number for each user, -1 for jobs that are nobody's or that only transfer."""
        names, codes = _coded(job["user"] if COUNTED[job["status"]] in JOBS else "" for job in self._jobs)
        return np.where(codes == names.index(""), -1, codes) if "" in names else codes

    @cached_property
    def _by_user(self) -> Mapping[str, list[JobEntry]]:
        by_user: dict[str, list[JobEntry]] = defaultdict(list)
        for job in self._jobs:
            if job["user"] and COUNTED[job["status"]] in JOBS:
                by_user[job["user"]].append(job)
        return by_user


def _ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), dtype=np.int64)


def _coded(values: Iterable[str]) -> tuple[list[str], Ints]:
    """The distinct texts, and for each text the place among them."""
    places: dict[str, int] = {}
    codes = _ints(places.setdefault(value, len(places)) for value in values)
    return list(places), codes
