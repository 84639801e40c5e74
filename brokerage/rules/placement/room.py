"""How many jobs a queue may get in one round of generate, whoever they are for (decision B19).

Here: what is known of the slots of each queue and of the jobs there, of all shares. Not here: how many jobs of one share may wait
at a queue (`slots`), nor what was given since (`slots.JobGrants`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import ceil
from types import MappingProxyType
from typing import Any

from brokerage.rules.grid.measurements import Facts
from brokerage.states import JOB

PER_START = 2
"""Jobs that may wait for each one that began in the last two rounds: the next two may begin as many, and more slots may come."""

_MOVING = "assigned"
_HELD_BACK = "throttled"
"""Jobs that no pilot gets, whatever is free: they take no room from others."""
_STANDING = JOB.waiting - {_MOVING, _HELD_BACK}


@dataclass(frozen=True, slots=True)
class QueueLoad:
    """The slots of a queue and the jobs there, of all shares.

    `slots` None: nothing is known of them, no pilot asked lately and nobody declared any. `waiting`: for a pilot, by share;
    `moving`: for their input; `held`: by a pilot; `jobs`: in any state that is not final; `starts`: in the last two rounds, by
    share; `misfits`: those of `waiting` that fit no slot which idles there.
    """

    slots: int | None = None
    waiting: Mapping[str, int] = field(default_factory=dict)
    moving: int = 0
    held: int = 0
    jobs: int = 0
    starts: Mapping[str, int] = field(default_factory=dict)
    misfits: Mapping[str, int] = field(default_factory=dict)

    def room(self, limit: int, *, local: bool = True) -> int:
        """Jobs that it may still get; `limit`: NQUEUELIMITSITE, for a queue to which pilots only come when jobs wait.

        Jobs whose input moves take room where that of the new ones must move too (`local` false).
        """
        return self._most(limit) - sum(self.waiting.values()) - (0 if local else self.moving)

    def room_of_share(self, share: str, limit: int, part: float) -> int:
        """How many of these may be for a share whose part of all is this, beside other shares that have jobs somewhere.

        What waits of one share would else keep the others out, and none would get more than the others. As many as began lately
        may wait in any case: where the others send nothing, a share goes on with all slots.
        """
        whole = ceil(round(self._most(limit) * part, 6))  # 7 % of 100 are 7, also in binary fractions
        return max(whole, self.starts.get(share, 0)) - self.waiting.get(share, 0)

    def part_left(self, share: str, limit: int, part: float) -> float:
        """What a share has not used yet of its part of what may wait."""
        return max(self._most(limit) * part - self.waiting.get(share, 0), 0.0)

    def idle(self) -> int:
        """Slots that no job waits for: they are for whoever comes first."""
        return (self.slots or 0) - self.held - sum(self.waiting.values())

    def without_misfits(self) -> QueueLoad:
        """The load as it is for a job that fits one of the idle slots."""
        fitting = {share: n - self.misfits.get(share, 0) for share, n in self.waiting.items()}
        return replace(self, waiting=fitting, misfits={})

    def _most(self, limit: int) -> int:
        return limit if self.slots is None else max(self.slots, PER_START * sum(self.starts.values()))


UNKNOWN = QueueLoad()
NO_STARTS: Mapping[str, Mapping[str, int]] = MappingProxyType({})


def queue_loads(facts: Facts, now: datetime, starts: Mapping[str, Mapping[str, int]] = NO_STARTS) -> Mapping[str, QueueLoad]:
    """Queue -> its load, of those of which anything is known.

    `starts`: queue -> share -> jobs that pilots took in the last two rounds.
    A slot is one that runs a job, or whose pilot idles: at least one where a pilot asked lately, which may be between two jobs.
    Declared slots count where they are more.
    """
    held, moving, beside = (defaultdict[str, int](int) for _ in range(3))
    waiting: dict[str, Counter[str]] = defaultdict(Counter)
    counted = ((JOB.leased, held), ({_MOVING}, moving), (JOB.delivering | (_HELD_BACK,), beside))
    count_of = {status: count for statuses, count in counted for status in statuses}
    for entry in facts.jobs:
        if entry["status"] in _STANDING:
            waiting[entry["queue"]][entry["share"]] += entry["n"]
        elif (count := count_of.get(entry["status"])) is not None:
            count[entry["queue"]] += entry["n"]
    misfits: dict[str, Counter[str]] = defaultdict(Counter)
    for entry in facts.misfits:  # not among the jobs
        misfits[entry["queue"]][entry["share"]] += entry["n"]
        waiting[entry["queue"]][entry["share"]] += entry["n"]
    pilots = {entry["queue"]: entry for entry in facts.pilots}
    declared = _declared(facts.slots, now)
    return {
        queue: QueueLoad(
            _slots(held[queue], pilots.get(queue), declared.get(queue, 0)),
            waiting.get(queue, {}),
            moving[queue],
            held[queue],
            held[queue] + sum(waiting.get(queue, {}).values()) + moving[queue] + beside[queue],
            starts.get(queue, {}),
            misfits.get(queue, {}),
        )
        for queue in {*held, *waiting, *moving, *beside, *pilots, *declared, *starts}
    }


def without_misfits(loads: Mapping[str, QueueLoad]) -> Mapping[str, QueueLoad]:
    """The loads as they are for jobs that fit idle slots wherever there are any."""
    return {queue: load.without_misfits() if load.misfits else load for queue, load in loads.items()}


NO_SHARE = ""
"""Stands for all work of VOs that no shares drive."""


def parts_of_shares(
    facts: Facts, percents: Mapping[str, float], wanting: Iterable[str] = (), vos_beside: int = 0
) -> Mapping[str, float]:
    """Share -> its part of those that have jobs waiting or running somewhere, or are about to; empty where fewer than two have.

    `percents`: of all that runs, what each share is to have. `wanting`: shares with tasks that may get jobs in this round. Were
    they not counted, the task that comes first would fill what may wait at a queue, and the others would have nothing there when
    their turn comes. `vos_beside`: so many VOs that no shares drive have such tasks too; each counts as much as a whole tree,
    all of them together are named NO_SHARE.
    """
    there = {entry["share"] for entry in facts.jobs if entry["status"] in _STANDING | JOB.leased}
    there = (there | {*wanting}) & percents.keys()
    wanted = {share: percents[share] for share in there} | ({NO_SHARE: 100.0 * vos_beside} if vos_beside else {})
    whole = sum(wanted.values())
    return {share: percent / whole for share, percent in wanted.items()} if len(wanted) > 1 and whole else {}


def _declared(slots: Iterable[Mapping[str, Any]], now: datetime) -> Mapping[str, int]:
    """Slots declared for a queue, of all shares."""
    declared: dict[str, int] = defaultdict(int)
    for slot in slots:
        if slot["expires"] is None or slot["expires"] > now:
            declared[slot["queue"]] += slot["n"]
    return declared


def _slots(held: int, pilots: Mapping[str, Any] | None, declared: int) -> int | None:
    seen = held
    if pilots is not None:
        seen = max(held + pilots["idle"], 1 if pilots["asked_lately"] else 0)
    return max(seen, declared) or None


def fill(rooms: dict[str, int], jobs: int) -> dict[str, int]:
    """Take room for so many jobs, as far as there is any: queue -> jobs. `rooms` is what is left."""
    taken: dict[str, int] = {}
    for queue in [queue for queue, room in rooms.items() if room > 0]:
        if jobs <= 0:
            break
        taken[queue] = min(jobs, rooms[queue])
        rooms[queue] -= taken[queue]
        jobs -= taken[queue]
    return taken
