"""Agent share. Takes the share trees and what their leaves have. Leaves where each share stands, by which work is served.
Next: generate, and pilots that ask."""

from __future__ import annotations

from broker_site.agency.run import Run, agent
from brokerage.queries.share_use import use_by_share
from workqueues.ledger.standings import note_standings
from workqueues.queries.shares import trees
from workqueues.rules.share_standing import of_tree


@agent("share")
def share(run: Run) -> int:
    """Count what each share has. Always 0: an agent that handled rows is run again at once, and here nothing is ever left."""
    if known := trees():
        used = use_by_share()
        note_standings((s for vo, tree in known.items() for s in of_tree(tree.nodes, used.get(vo, {}))), run.now)
    return 0
