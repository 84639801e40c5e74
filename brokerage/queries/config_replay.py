"""What a change of the configuration would have done to the decisions that are kept with their snapshots. Only read."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime

import brokerage.policies  # noqa: F401 - declares the policies that stored decisions name
from broker_site.foundation.gdpconfig.values import Config
from broker_site.foundation.outside_data import OutsideDataError
from brokerage.models import Decision, StoredSnapshot
from brokerage.queries.decisions import DecisionFacts
from brokerage.rules.decision.assembly import DecisionRequest
from brokerage.rules.decision.declare import POLICIES
from brokerage.rules.decision.policy_choice import Unusable
from brokerage.rules.decision.policy_config import BrokerConfig
from brokerage.rules.explain.replay import Compared, Tally, compared, touched
from brokerage.rules.facts.ask import Ask
from brokerage.rules.world.grid_snapshot import GridSnapshot

SNAPSHOTS = 50
"""Newest snapshots whose decisions are taken again."""
MOST = 400
"""Newest decisions that are looked at."""
LONGEST_S = 0.2
"""Time after which no further decision is begun."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What the decisions say, how many are kept, and between which times the ones lie that were looked at.

    `unreadable`: kept ones that can no longer be taken again, since their policy or form is gone; they are not counted elsewhere.
    """

    tally: Tally
    kept: int
    unreadable: int
    oldest: datetime | None
    newest: datetime | None

    @property
    def sentence(self) -> str:
        """What it says, and on how many decisions that rests."""
        t = self.tally
        if not t.decisions:
            return "No kept decision could be taken again, so nothing is known of what would change."
        base = f"{t.unchanged} of {t.decisions} kept decisions unchanged; {t.gain} gain candidates, {t.lose} lose some"
        turned = f"; {t.to_pending} would now wait" * bool(t.to_pending) + f"; {t.to_assign} no longer wait" * bool(t.to_assign)
        more = f" ({self.kept - t.decisions - self.unreadable} further ones were not looked at)"
        return base + turned + more * (self.kept > t.decisions + self.unreadable) + "."


def replayed(before: Config, after: Config) -> Replay:
    """Take the newest kept decisions again under both configurations, for as long as a dry run may take."""
    snapshots = list(StoredSnapshot.objects.order_by("-id").values_list("id", flat=True)[:SNAPSHOTS])
    rows = Decision.objects.filter(snapshot__in=snapshots)
    configs = BrokerConfig(before.component), BrokerConfig(after.component)
    tally, unreadable, ends = Tally(), 0, time.monotonic() + LONGEST_S
    seen: dict[int, GridSnapshot | None] = {}
    times: list[datetime] = []
    for row in rows.defer("record", "config").order_by("-id")[:MOST]:
        if time.monotonic() >= ends:
            break
        try:
            tally.add(_compared(row, *configs, seen))
        except CannotReplay:
            unreadable += 1
        else:
            times.append(row.last_at)
    return Replay(tally, rows.count(), unreadable, min(times, default=None), max(times, default=None))


class CannotReplay(Exception):
    """The decision's policy, form or snapshot is gone."""


def _compared(row: Decision, before: BrokerConfig, after: BrokerConfig, seen: dict[int, GridSnapshot | None]) -> Compared | None:
    """None where nothing that the decision reads differs. `seen`: snapshots that were unpacked before."""
    policy = POLICIES.get(row.policy)
    if policy is None or policy.version != row.policy_version or row.snapshot_id is None:
        raise CannotReplay
    try:
        ask = Ask.from_document(row.ask)
        reads = touched(policy, ask, before, after)
        if not any(reads):
            return None
        if row.snapshot_id not in seen:
            row.snapshot = StoredSnapshot.objects.select_related("grid", "links").get(id=row.snapshot_id)
            seen[row.snapshot_id] = DecisionFacts(row, policy, ask, {}, None).snapshot
        if (snapshot := seen[row.snapshot_id]) is None:
            raise CannotReplay
        own = DecisionFacts(row, policy, ask, {}, None).task_facts
        return compared(DecisionRequest(snapshot, own, ask, policy, before, row.seed), reads.hint, before, after)
    except (Unusable, OutsideDataError, StoredSnapshot.DoesNotExist) as gone:
        raise CannotReplay from gone
