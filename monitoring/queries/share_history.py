"""A share over time: what it used beside what it should have, and who uses it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from broker_site.foundation.access.permissions import VoScope
from brokerage.rules.facts.series import Asked
from brokerage.states import JOB
from monitoring.plots import Curve, Plot
from monitoring.queries.database import alias
from monitoring.queries.history import History, Step, history
from monitoring.queries.series import WINDOWS, added, counted
from monitoring.queries.users import Users, user_rows
from workqueues.models import GlobalShare, ShareStanding
from workqueues.queries.shares import trees
from workqueues.rules.shares.tree import Node, targets, walk

MOST_USERS = 20


@dataclass(frozen=True, slots=True)
class ShareStep(Step):
    """The same of a share, with how many of its jobs had a slot, how many of the whole VO had, and its part of these."""

    used: int
    used_by_all: int
    target: float


@dataclass(frozen=True, slots=True)
class Share:
    """A share of a tree. `percent`: its part of all by the weights as they are now; `leaves`: those below, or itself."""

    name: str
    vo: str
    parent: str
    children: Sequence[str]
    leaves: tuple[str, ...]
    weight: float
    percent: float
    standing: ShareStanding | None

    @property
    def deviation(self) -> float | None:
        """Used less target, percent of the target."""
        known = self.standing
        return (known.hs06_running - known.target) / known.target * 100 if known and known.target else None


@dataclass(frozen=True, slots=True)
class ShareHistory:
    """What a share did in a window; `used_by_all`: jobs of its VO that had a slot at the end of each step."""

    share: Share
    history: History
    used_by_all: Sequence[int]

    @property
    def counted_at(self) -> datetime | None:
        return self.history.counted_at

    @property
    def used(self) -> Sequence[int]:
        """Jobs that had a slot at the end of each step."""
        return added([self.history.found.line(state) for state in JOB.leased])

    @property
    def target(self) -> Sequence[float]:
        """The share's part of all that had a slot."""
        return [round(n * self.share.percent / 100, 1) for n in self.used_by_all]

    @property
    def use(self) -> Plot:
        """Use beside target."""
        curves = [Curve("used", "running", self.used), Curve("target", "target", self.target)]
        return Plot("Use and target", self.history.found.times, self.history.step_s, curves, levels=True)

    @property
    def steps(self) -> list[ShareStep]:
        beside = zip(self.history.steps, self.used, self.used_by_all, self.target, strict=True)
        return [ShareStep(**asdict(step), used=used, used_by_all=by_all, target=target) for step, used, by_all, target in beside]


def find_share(name: str, scope: VoScope) -> Share | None:
    """The share, if there is one in the scope; three statements."""
    row = GlobalShare.objects.using(alias()).filter(scope.q(), name=name).first()
    if row is None:
        return None
    nodes = trees(GlobalShare.objects.using(alias()).filter(vo=row.vo))[row.vo].nodes
    node = next((node for node, _, _ in walk(nodes) if node.name == name), Node(name, row.value))
    return Share(
        name,
        row.vo,
        row.parent_id or "",
        [child.name for child in node.children],
        tuple(leaf.name for leaf in node.leaves()),
        row.value,
        targets(nodes, 100.0).get(name, 0.0),
        ShareStanding.objects.using(alias()).filter(share_id=name).first(),
    )


def share_history(share: Share, scope: VoScope, window: str) -> ShareHistory:
    """Two statements."""
    window_s, step_s = WINDOWS[window]
    whole = counted(Asked(tuple(JOB.leased), window_s, step_s, only={"vo": share.vo}), scope)
    jobs = history(scope, window, {"vo": share.vo, "share": share.leaves})
    return ShareHistory(share, jobs, added([whole.line(state) for state in JOB.leased]))


def users_of(share: Share, scope: VoScope) -> Users:
    """Who uses the share most; one statement."""
    return user_rows(scope, share.leaves, most=MOST_USERS)


def shares_below(share: str, scope: VoScope) -> Collection[str] | None:
    """The shares whose jobs are meant by the name of one: those below it; None for no name."""
    known = find_share(share, scope) if share else None
    return (known.leaves if known else (share,)) if share else None
