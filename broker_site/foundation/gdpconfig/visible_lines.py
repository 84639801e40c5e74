"""Who may see which line of the configuration: the one rule of exports, drafts, change sets and proposals, on pages and in REST.

Keys, and rows of kinds that belong to no VO, are seen by whoever may read the configuration; a row of a VO by who looks into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.gdpconfig.changesets import Line
from broker_site.foundation.gdpconfig.line_kinds import LINE_KINDS
from broker_site.foundation.gdpconfig.listing import lines_of_sets
from broker_site.foundation.gdpconfig.models import Change, ChangeSet, Proposal
from broker_site.foundation.gdpconfig.row_lines import RowLines
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.verdict import Problem


def _for_all(kind: str) -> tuple[str, ...] | None:
    """The VOs of a kind whose rows all see; None: all of it. Of a kind that is no longer declared none."""
    if kind not in LINE_KINDS:
        return ()
    declared = LINE_KINDS[kind]
    return declared.for_all if isinstance(declared, RowLines) else None


def sees(scope: VoScope, kind: str, vo: str) -> bool:
    """Whether somebody who may read the configuration of these VOs sees a line of this kind and VO."""
    for_all = _for_all(kind)
    return vo in scope or for_all is None or vo in for_all


def seen_lines(scope: VoScope) -> Q:
    """The same as a condition on lines of change sets."""
    if scope.everything:
        return Q()
    rules = {kind: _for_all(kind) for kind in LINE_KINDS}
    seen = scope.q("vo") | Q(kind__in=[kind for kind, for_all in rules.items() if for_all is None])
    for kind, for_all in rules.items():
        seen |= Q(kind=kind, vo__in=for_all or ())
    return seen


def seen_sets(scope: VoScope, using: str = "default") -> QuerySet[ChangeSet]:
    """Change sets with a line that is seen, or with none at all: `n_lines` that are seen, and `n_hidden`."""
    told = lines_of_sets(seen_lines(scope))
    sets = ChangeSet.objects.using(using).annotate(n_lines=told, n_hidden=lines_of_sets() - F("n_lines"))
    if scope.everything:
        return sets
    lines = Change.objects.using(using).filter(change_set=OuterRef("pk"))
    return sets.filter(Exists(lines.filter(seen_lines(scope))) | ~Exists(lines))


def seen_proposals(scope: VoScope, using: str = "default") -> QuerySet[Proposal]:
    """Proposals with a line that is seen."""
    proposals = Proposal.objects.using(using)
    if scope.everything:
        return proposals.all()
    rules = {kind: _for_all(kind) for kind in LINE_KINDS}
    wanted: list[dict[str, str]] = [{"vo": vo} for vo in sorted(scope.names)]
    wanted += [{"kind": kind} for kind, for_all in rules.items() if for_all is None]
    wanted += [{"kind": kind, "vo": vo} for kind, for_all in rules.items() for vo in for_all or ()]
    seen = Q(pk__in=())
    for line in wanted:
        seen |= Q(lines__contains=[line])
    return proposals.filter(seen)


def open_proposals(scope: VoScope, using: str = "default") -> Sequence[Proposal]:
    """Those that are seen and wait for somebody, newest first."""
    return list(seen_proposals(scope, using).filter(outcome="", expires_at__gt=clock.now()).order_by("-id"))


def hidden(scope: VoScope, lines: Iterable[Line]) -> Iterator[Problem]:
    """A fault for each line of a draft that who drafts may not see: what it would change would be told."""
    for number, line in enumerate(lines):
        if not sees(scope, line.kind, line.vo):
            yield Problem(f"lines[{number}]", "right", f"{line.vo or 'all VOs'}: not among the VOs that you may look into")
