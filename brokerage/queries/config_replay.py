"""What a change of the configuration would have done to the decisions that are kept with their snapshots. Only read."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

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

MOST = 400
"""Newest decisions that are looked at."""
SNAPSHOTS = 50 + MOST
"""Newest snapshots whose decisions are taken again. Older than the newest 50 is only what a task that goes on was last decided
on: equal decisions in a row are one, with the snapshot of the first, so a task that waits for long has an old one."""
LONGEST_S = 0.15
"""Time after which no further decision is begun."""
KEPT, KEPT_S = 2, 120.0
"""Snapshots that a process keeps unpacked for the next dry run of who tries one value after the other, and for how long."""


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


class Unpacked:
    """Snapshots as decisions read them, with all that was reckoned from them; the newest ones are kept for a while."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int, datetime], tuple[float, GridSnapshot | None]] = {}

    def of(self, row: Decision, snapshot_id: int, at: datetime) -> GridSnapshot | None:
        """That of a decision, taken at this time; None where it has another form by now. StoredSnapshot.DoesNotExist."""
        key, now = (str(connection.settings_dict["NAME"]), snapshot_id, at), time.monotonic()
        known = self._kept.get(key)
        if known is not None and now < known[0]:
            return known[1]
        row.snapshot = StoredSnapshot.objects.select_related("grid", "links").get(id=snapshot_id)
        snapshot = DecisionFacts(row, None, None, {}, None).snapshot
        young = {**{k: kept for k, kept in self._kept.items() if now < kept[0]}, key: (now + KEPT_S, snapshot)}
        self._kept = {k: young[k] for k in sorted(young, key=lambda k: k[2])[-KEPT:]}
        return snapshot


UNPACKED = Unpacked()


def replayed(before: Config, after: Config) -> Replay:
    """Take the newest kept decisions again under both configurations, for as long as a dry run may take."""
    snapshots = dict(StoredSnapshot.objects.order_by("-id").values_list("id", "at")[:SNAPSHOTS])
    rows = Decision.objects.filter(snapshot__in=list(snapshots))
    configs = BrokerConfig(before.component), BrokerConfig(after.component)
    tally, unreadable, ends = Tally(), 0, time.monotonic() + LONGEST_S
    seen: dict[int, GridSnapshot | None] = {}
    times: list[datetime] = []
    for row in rows.defer("record", "config").order_by("-id")[:MOST]:
        if time.monotonic() >= ends:
            break
        try:
            tally.add(_compared(row, *configs, seen, snapshots))
        except CannotReplay:
            unreadable += 1
        else:
            times.append(row.last_at)
    return Replay(tally, rows.count(), unreadable, min(times, default=None), max(times, default=None))


class CannotReplay(Exception):
    """The decision's policy, form or snapshot is gone."""


def _compared(
    row: Decision,
    before: BrokerConfig,
    after: BrokerConfig,
    seen: dict[int, GridSnapshot | None],
    taken_at: Mapping[int, datetime],
) -> Compared | None:
    """None where nothing that the decision reads differs. `seen`: snapshots that were read before; `taken_at`: when they were."""
    policy = POLICIES.get(row.policy)
    if policy is None or policy.version != row.policy_version or row.snapshot_id is None:
        raise CannotReplay
    try:
        ask = Ask.from_document(row.ask)
        reads = touched(policy, ask, before, after)
        if not any(reads):
            return None
        if row.snapshot_id not in seen:
            seen[row.snapshot_id] = UNPACKED.of(row, row.snapshot_id, taken_at[row.snapshot_id])
        if (snapshot := seen[row.snapshot_id]) is None:
            raise CannotReplay
        own = DecisionFacts(row, policy, ask, {}, None).task_facts
        return compared(DecisionRequest(snapshot, own, ask, policy, before, row.seed), reads.hint, before, after)
    except (Unusable, OutsideDataError, StoredSnapshot.DoesNotExist) as gone:
        raise CannotReplay from gone
