"""How filters, weights and policies are declared: `@filter`, `@filters`, `@weight`, `@policy`.

Here: the shapes of the declarations and their registries. Not here: running them (`brokerage.rules.decision.pipeline`) and the
rules themselves (`brokerage.filters`, `brokerage.weights`, `brokerage.policies`; other packages declare theirs in the same way).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from broker_site.foundation.kernel.registry import Registry, UnknownName
from broker_site.foundation.kernel.verdict import Kind
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Columns, Flags, Floats

Numbers = Mapping[str, Any]
"""What a filter compared: name to one value, or to one value per candidate."""

Passes = Flags | bool


@dataclass(frozen=True, slots=True, eq=False)
class Relaxation:
    """Verdicts that give way where they would leave nobody: the strictest, and laxer ones in order that are made if needed.

    The first hold by which a candidate is left that passes all other criteria that last or open the next step; where none
    leaves one, the strictest. Each has a verdict for each criterion of the filter.
    """

    strict: tuple[Passes, ...]
    laxer: tuple[Callable[[], tuple[Passes, ...]], ...]


Verdicts = tuple[Passes, ...] | Relaxation
Judge = Callable[[Ask, Any, Config], tuple[Passes, Numbers]]
AnyJudge = Callable[[Ask, Any, Config], tuple[Passes | Verdicts, Numbers]]
JudgeMany = Callable[[Ask, Any, Config], tuple[Verdicts, Numbers]]
Factor = Callable[[Ask, Any, Config], Floats | float]


@dataclass(frozen=True, slots=True)
class Criterion:
    """One column of verdicts: its label, the sentence for who is skipped, and whether waiting can help.

    `reason` is a format over the numbers of the filter. `gap` names two of them, what is needed and what there is: their relative
    distance says how close a skipped candidate is. `opens`: it passes with time, but others give way to it as to one that lasts.
    `returns`: of a persistent one, that the queue, link, pilot, room or file which it misses may be there another time, without a
    change of the task, of what the queue offers, or of the configuration. `chosen`: who fails it is not what the task itself, or
    where its files are, names.
    """

    label: str
    reason: str
    kind: Kind = "persistent"
    gap: tuple[str, str] | None = None
    opens: bool = False
    returns: bool = False
    chosen: bool = False

    @property
    def lasts(self) -> bool:
        """Whether who fails it can never pass unless somebody changes the task, the queue or the configuration (decision B22)."""
        return self.kind == "persistent" and not self.returns


@dataclass(frozen=True, slots=True)
class Filter:
    """One rule over the columns of all candidates, with one criterion for each label that it can skip by."""

    name: str
    criteria: tuple[Criterion, ...]
    keys: tuple[str, ...]
    doc: str
    judge: AnyJudge = field(repr=False)

    def __call__(self, ask: Ask, columns: Columns, config: Config) -> tuple[Verdicts, Numbers]:
        """One array per criterion, True where the candidate passes, and the numbers that were compared."""
        verdicts, numbers = self.judge(ask, columns, config)
        return (verdicts if isinstance(verdicts, tuple | Relaxation) else (verdicts,)), numbers


@dataclass(frozen=True, slots=True)
class Weight:
    """One factor of a candidate's weight. `divisor` names what it divides by, where that can be 0."""

    name: str
    keys: tuple[str, ...]
    doc: str
    factor: Factor = field(repr=False)
    divisor: str = ""

    def __call__(self, ask: Ask, columns: Columns, config: Config) -> Floats | float:
        """The factor of every candidate, or one for all; not a number, or infinite, where it cannot be computed."""
        return self.factor(ask, columns, config)

    @property
    def missing(self) -> str:
        """Why it cannot be computed, for who is skipped by it (decision A5)."""
        return f"{self.divisor} is 0" if self.divisor else f"{self.name} is not a number"


FILTERS: Registry[Filter] = Registry("filter")
WEIGHTS: Registry[Weight] = Registry("weight")


def filter(
    label: str,
    reason: str,
    *,
    kind: Kind = "persistent",
    gap: tuple[str, str] | None = None,
    keys: tuple[str, ...] = (),
    returns: bool = False,
    chosen: bool = False,
) -> Callable[[Judge], Filter]:
    """Declare a filter with one criterion; `keys` are the configuration keys that it reads."""

    return lambda judge: _declared(judge, (Criterion(label, reason, kind, gap, returns=returns, chosen=chosen),), keys)


def filters(*criteria: Criterion, keys: tuple[str, ...] = ()) -> Callable[[JudgeMany], Filter]:
    """Declare a filter that yields several criteria from the same numbers, in this order."""

    return lambda judge: _declared(judge, criteria, keys)


def weight(name: str, *, keys: tuple[str, ...] = (), divisor: str = "") -> Callable[[Factor], Weight]:
    """Declare a weight factor; `divisor` is what it divides by, in words, where that can be 0."""

    def declare(factor: Factor) -> Weight:
        return WEIGHTS.add(name, Weight(name, keys, factor.__doc__ or "", factor, divisor))

    return declare


def _declared(judge: AnyJudge, criteria: tuple[Criterion, ...], keys: tuple[str, ...]) -> Filter:
    name = getattr(judge, "__name__", "")
    return FILTERS.add(name, Filter(name, criteria, keys, judge.__doc__ or "", judge))


MANY = 20
"""From so many candidates for each place on those that cannot be among the best are left out before sorting."""


@dataclass(frozen=True, slots=True)
class Best:
    """Take the candidates with the highest weights, as many as the key says; ties by name. Of parts of one queue the best counts.

    `least` names a key `least_<label>` or `least_<label>_<gshare>`, by which lower weights are not taken at all.
    """

    key: str
    least: str = field(default="", repr=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that it reads."""
        return (self.key, *((f"{self.least}_<label>", f"{self.least}_<label>_<gshare>") if self.least else ()))

    def least_weight(self, ask: Ask, config: Config) -> float:
        """The weight below which nothing is taken, 0 where none is set."""
        for name in (f"{self.least}_{ask.prod_source_label}_{ask.share}", f"{self.least}_{ask.prod_source_label}"):
            if self.least and (value := config.get(name)) is not None:
                return float(value)
        return 0.0

    def __call__(
        self, columns: Columns, weights: Floats, passing: Flags, config: Config, _dice: Callable[[], Random]
    ) -> NDArray[np.intp]:
        """Rows of the chosen, best first; rows are in the order of names, so a stable sort settles ties."""
        rows = np.flatnonzero(passing)
        most = config[self.key]
        enough = most * columns.rows_for_one
        lowest = -weights[rows]
        if len(rows) > MANY * enough:
            # Only those that can be among the best are sorted.
            near = lowest <= np.partition(lowest, enough - 1)[enough - 1]
            rows, lowest = rows[near], lowest[near]
        return columns.first_of_each(rows[np.argsort(lowest, kind="stable")[:enough]])[:most]


@dataclass(frozen=True, slots=True)
class Draw:
    """Take one candidate at random, each in proportion to its weight; where all weights are zero, any."""

    keys: ClassVar[tuple[str, ...]] = ()
    least: ClassVar[str] = ""

    def least_weight(self, _ask: Ask, _config: Config) -> float:
        """Every weight will do."""
        return 0.0

    def __call__(
        self, _columns: Columns, weights: Floats, passing: Flags, _config: Config, dice: Callable[[], Random]
    ) -> NDArray[np.intp]:
        """The row of the one that is drawn; none if there is no candidate."""
        rows = np.flatnonzero(passing)
        if not len(rows):
            return rows
        chances = weights[rows] if weights[rows].any() else np.ones(len(rows))
        reached = np.cumsum(chances)
        at = int(np.searchsorted(reached, dice().random() * reached[-1], side="right"))
        return rows[min(at, len(rows) - 1) :][:1]


@dataclass(frozen=True, slots=True)
class PendingFor:
    """Without a candidate the task waits for the duration that the key gives (seconds)."""

    key: str


NO_WEIGHT = Criterion("no_weight", "cannot be computed: {what}", "temporary")
BELOW_MIN_WEIGHT = Criterion(
    "below_min_weight", "its weight is {weight:.4g}, {least:.4g} at least", "temporary", ("weight", "least")
)
LOW_WEIGHT = Criterion("low_weight", "its weight {weight:.4g} is not among the best", "temporary")


class BrokeragePolicy:
    """Ordered lists of rules that make a brokerage decision; a subclass sets the lists and nothing else.

    `prepare` says what an ask is taken for, `throttle` whether the task may have jobs at all, `candidates` who takes part;
    `filters` come before the weights in the document, `late_filters` after them, and `further_filters` are those that only
    practice has. All are evaluated for every candidate; the order decides which criterion is told as the first.
    `components` are those of the configuration whose keys the rules read,
    `app:component` where the app is another; a later one wins. `per_share`: whether the jobs counted are those of the task's
    share, else all. `judged` are the criteria of the rules, `lasting` those among them that last, `opening` the persistent ones
    and those that open the next step, `early` those that are not late; `criteria` are also those by which the choice skips.
    """

    name: ClassVar[str] = ""
    components: ClassVar[tuple[str, ...]] = ("jobbroker",)
    per_share: ClassVar[bool] = True
    vo: ClassVar[str] = "*"
    activity: ClassVar[str] = ""
    prepare: ClassVar[Callable[[Ask, Config], Ask]] = staticmethod(lambda ask, _config: ask)
    throttle: ClassVar[tuple[Filter, ...]] = ()
    candidates: ClassVar[Filter]
    filters: ClassVar[tuple[Filter, ...]] = ()
    weights: ClassVar[tuple[Weight, ...]] = ()
    late_filters: ClassVar[tuple[Filter, ...]] = ()
    further_filters: ClassVar[tuple[Filter, ...]] = ()
    select: ClassVar[Best | Draw]
    otherwise: ClassVar[PendingFor]

    rules: ClassVar[tuple[Filter, ...]] = ()
    judged: ClassVar[tuple[Criterion, ...]] = ()
    lasting: ClassVar[NDArray[np.intp]]
    opening: ClassVar[NDArray[np.intp]]
    early: ClassVar[NDArray[np.intp]]
    criteria: ClassVar[tuple[Criterion, ...]] = ()
    keys: ClassVar[tuple[str, ...]] = ()
    version: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        cls.rules = (*cls.throttle, cls.candidates, *cls.filters, *cls.late_filters, *cls.further_filters)
        cls.judged = tuple(chain.from_iterable(rule.criteria for rule in cls.rules))
        cls.lasting = np.flatnonzero([criterion.lasts for criterion in cls.judged])
        cls.opening = np.flatnonzero([criterion.kind == "persistent" or criterion.opens for criterion in cls.judged])
        cls.early = np.flatnonzero([rule not in cls.late_filters for rule in cls.rules for _ in rule.criteria])
        cls.criteria = (*cls.judged, NO_WEIGHT, *((BELOW_MIN_WEIGHT,) if cls.select.least else ()), LOW_WEIGHT)
        read = chain.from_iterable([*(rule.keys for rule in cls.rules), *(factor.keys for factor in cls.weights)])
        cls.keys = tuple(sorted({*read, *cls.select.keys, cls.otherwise.key}))
        parts = [f"{rule.name}:{[(c.label, c.kind, c.opens) for c in rule.criteria]}" for rule in cls.rules]
        parts += [factor.name for factor in cls.weights] + [repr(cls.select), repr(cls.otherwise)]
        parts += [cls.select.least] if cls.select.least else []
        cls.version = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


Policy = type[BrokeragePolicy]
POLICIES: Registry[Policy] = Registry("policy")


def policy(*, vo: str, activity: str) -> Callable[[Policy], Policy]:
    """Declare a policy for one VO (`*` = any that has no own) and one activity.

    Its name is the activity, with another VO `vo-activity`.
    """

    def declare(cls: Policy) -> Policy:
        cls.vo, cls.activity = vo, activity
        cls.name = activity if vo == "*" else f"{vo}-{activity}"
        return POLICIES.add(cls.name, cls)

    return declare


def policy_for(vo: str, activity: str) -> Policy:
    """The policy that a VO declared for an activity, else the one for all VOs; UnknownName if there is none."""
    name = f"{vo}-{activity}"
    if name in POLICIES:
        return POLICIES[name]
    if activity in POLICIES and POLICIES[activity].vo == "*":
        return POLICIES[activity]
    raise UnknownName(f"no policy for the activity {activity!r} of {vo!r}; there are: {', '.join(POLICIES)}")
