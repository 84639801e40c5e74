"""What the agent share does for VOs whose jobs are handed out by the shares of groups (row D2): priorities of task queues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from broker_site.foundation import gdpconfig
from brokerage.ledger.group_shares import note_priorities, note_use
from brokerage.models import TaskQueue
from brokerage.queries.dispatch_policies import by_group
from brokerage.queries.group_jobs import running_by_owner, uncounted, used, waiting_by_group
from brokerage.rules.dispatch.group_shares import TimeSlice, corrected, owner_shares, queue_priorities
from brokerage.rules.dispatch.groups import JOB_SHARING, UNNAMED, Group, read_groups
from brokerage.rules.dispatch.share_correction import read_slices


class GroupShares:
    """The priorities, counted anew each period by a process, and at once where a task queue has none yet."""

    def __init__(self) -> None:
        self._last: datetime | None = None

    def run(self, now: datetime) -> None:
        """Note what groups use, and their priorities if it is time."""
        vos = [vo for vo in TaskQueue.objects.order_by("vo").values_list("vo", flat=True).distinct() if by_group(vo)]
        if not vos:
            return
        note_use(running_by_owner(vos))
        period = timedelta(seconds=gdpconfig.value("dispatch", "GROUP_SHARES_PERIOD"))
        if self._last is None or now - self._last >= period or uncounted(vos):
            self._last = now
            note_priorities(_priorities(vos))


def _priorities(vos: Collection[str]) -> dict[int, float]:
    waiting, priorities = waiting_by_group(vos), dict[int, float]()
    for vo in vos:
        mine = {group: queues for (of_vo, group), queues in waiting.items() if of_vo == vo}
        named = read_groups(gdpconfig.value("dispatch", "GROUPS", vo=vo))
        wanted = read_slices(gdpconfig.value("dispatch", "SHARES_CORRECTION", vo=vo))
        slices = [_Slice(used(vo, each.seconds), each.weight, each.max) for each in wanted]
        groups = _corrected(vo, {group: named.get(group, UNNAMED) for group in mine}, slices)
        for group, queues in mine.items():
            shares = _of_owners(vo, group, groups[group], {queue.owner for queue in queues.values()}, slices)
            priorities |= queue_priorities(queues, groups[group], shares)
    return priorities


class _Slice:
    """What was used in one stretch of the past, by group and by owner: read once, whatever the number of groups."""

    def __init__(self, amounts: Mapping[tuple[str, str], float], weight: float, most: float) -> None:
        self._weight, self._most = weight, most
        self._owners: dict[str, dict[str, float]] = defaultdict(dict)
        for (group, owner), amount in amounts.items():
            self._owners[group][owner] = amount

    def of_groups(self) -> TimeSlice:
        """What each group used."""
        return TimeSlice({name: sum(owners.values()) for name, owners in self._owners.items()}, self._weight, self._most)

    def of_owners(self, group: str) -> TimeSlice:
        """What each owner used in this group."""
        return TimeSlice(self._owners.get(group, {}), self._weight, self._most)


def _corrected(vo: str, groups: dict[str, Group], slices: Collection[_Slice]) -> dict[str, Group]:
    """The groups with their shares corrected by what they used."""
    most = gdpconfig.value("dispatch", "MAX_GLOBAL_CORRECTION", vo=vo)
    shares = corrected({name: group.share for name, group in groups.items()}, [each.of_groups() for each in slices], most)
    return {name: group.model_copy(update={"share": shares[name]}) for name, group in groups.items()}


def _of_owners(vo: str, name: str, group: Group, owners: Collection[str], slices: Collection[_Slice]) -> dict[str, float] | None:
    """The shares of the owners of a group, corrected; None where they are not told apart."""
    if JOB_SHARING in group.properties:
        return None
    shares = owner_shares(group, owners)
    most = gdpconfig.value("dispatch", "MAX_GLOBAL_CORRECTION", vo=vo)
    return corrected(shares, [each.of_owners(name) for each in slices], most)
