"""Agent share. Takes share trees, work queues and what each has. Leaves where each stands, by which work is served.
Next: generate, and pilots that ask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain

from broker_site.foundation import gdpconfig
from broker_site.foundation.agency.batches import one_by_one
from broker_site.foundation.agency.run import Run, agent
from brokerage.agents.group_shares import GroupShares
from brokerage.queries.share_use import share_use
from workqueues.ledger.standings import note_queue_standings, note_standings
from workqueues.models import WorkQueue
from workqueues.queries.shares import trees
from workqueues.queries.standings import Remembered, remembered_of_queues, remembered_of_shares
from workqueues.queries.units import Units
from workqueues.queries.work_queues import active_queues, shared_queues
from workqueues.rules.shares.catch_up import Lately
from workqueues.rules.shares.usage import UnitStanding, Use, of_queues, of_tree
from workqueues.rules.throttle.units import RESOURCE

GROUPS = GroupShares()


@agent("share")
def share(run: Run) -> int:
    """Count what each has. Always 0: an agent that handled rows is run again at once, and here nothing is ever left."""
    use, forest = share_use(), trees()
    leave = partial(_leave, run)
    lately = partial(_lately, run, remembered_of_shares())

    def of_shares(vo: str) -> list[UnitStanding]:
        return of_tree(forest[vo].nodes, use.shares.get(vo, {}), lately(vo))

    shares = one_by_one(sorted(forest), of_shares, leave)
    note_standings(chain.from_iterable(shares), run.now)
    note_queue_standings(dict(_queues(use.queues, partial(_lately, run, remembered_of_queues()), leave)), run.now)
    GROUPS.run(run.now)
    return 0


def _lately(run: Run, remembered: Mapping[str, Remembered], vo: str) -> Lately:
    """What is remembered of the units of a VO."""
    known, memory_s = remembered.get(vo), gdpconfig.value("shares", "SHARE_MEMORY", vo=vo)
    return Lately(known.ahead, (run.now - known.at).total_seconds(), memory_s) if known else Lately()


def _leave(run: Run, vo: str, error: Exception) -> None:
    run.leave(f"the shares of VO {vo}", error)


def _queues(
    use_by_queue: Mapping[str, Mapping[int, Use]], lately: Callable[[str], Lately], leave: Callable[[str, Exception], None]
) -> list[tuple[str, list[UnitStanding]]]:
    """VO -> where its work queues stand: all where they drive it, else those that are units beside the shares, without place."""
    units, active = Units.load(), active_queues()
    rows = list(WorkQueue.objects.filter(status="active").order_by("queue_order"))

    def of_vo(vo: str) -> tuple[str, list[UnitStanding]]:
        use = use_by_queue.get(vo, {})
        queues = shared_queues(vo, rows, {*active.get(vo, ()), *use})
        standings = of_queues(queues, {str(id_): of_queue for id_, of_queue in use.items()}, lately(vo))
        if units.model(vo) == "global":
            resource = {str(row.id) for row in rows if row.queue_function == RESOURCE}
            standings = [replace(s, place=None, above=False) for s in standings if s.name in resource]
        return vo, standings

    return one_by_one(sorted({*active, *use_by_queue, *(row.vo for row in rows if row.vo not in ("", "*"))}), of_vo, leave)
