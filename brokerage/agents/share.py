"""Agent share. Takes share trees, work queues and what each has. Leaves where each stands, by which work is served.
Next: generate, and pilots that ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from broker_site.foundation.agency.run import Run, agent
from brokerage.queries.share_use import in_use
from workqueues.ledger.standings import note_queue_standings, note_standings
from workqueues.models import WorkQueue
from workqueues.queries.shares import trees
from workqueues.queries.units import Units
from workqueues.queries.work_queues import active_queues, shared_queues
from workqueues.rules.shares.usage import UnitStanding, Use, of_queues, of_tree
from workqueues.rules.throttle.units import RESOURCE


@agent("share")
def share(run: Run) -> int:
    """Count what each has. Always 0: an agent that handled rows is run again at once, and here nothing is ever left."""
    used, known = in_use(), trees()
    note_standings((s for vo, tree in known.items() for s in of_tree(tree.nodes, used.shares.get(vo, {}))), run.now)
    note_queue_standings(dict(_queues(used.queues)), run.now)
    return 0


def _queues(used: Mapping[str, Mapping[int, Use]]) -> Iterator[tuple[str, list[UnitStanding]]]:
    """VO -> where its work queues stand: all where they drive it, else those that are units beside the shares, without place."""
    units, active = Units.load(), active_queues()
    rows = list(WorkQueue.objects.filter(status="active").order_by("queue_order"))
    for vo in sorted({*active, *used, *(row.vo for row in rows if row.vo not in ("", "*"))}):
        have = used.get(vo, {})
        queues = shared_queues(vo, rows, {*active.get(vo, ()), *have})
        standings = of_queues(queues, {str(id_): use for id_, use in have.items()})
        if units.model(vo) == "global":
            resource = {str(row.id) for row in rows if row.queue_function == RESOURCE}
            standings = [replace(s, place=None, above=False) for s in standings if s.name in resource]
        yield vo, standings
