"""The share tree of a VO, edited as a tree: sums and faults as it is typed, what it would have meant, then one set of changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase
from django.views.decorators.http import require_http_methods

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.guards import page_requires
from broker_site.foundation.access.permissions import may, visible_vos
from broker_site.foundation.access.sessions import password_is_fresh
from broker_site.foundation.gdpconfig.changesets import Draft, Step
from broker_site.foundation.gdpconfig.draft_form import sent_base
from broker_site.foundation.gdpconfig.keys import BadConfig
from broker_site.foundation.gdpconfig.store import preview
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.verdict import Problem
from brokerage.queries.steering_trial import SteeringTrial, steering_trial
from brokerage.queries.what_if import reading_only
from monitoring.queries.configuration import newest_revision
from monitoring.queries.share_editor import (
    EditedRow,
    add_sums,
    draft_of,
    put_problems,
    sent_rows,
    stored_rows,
)
from monitoring.queries.shares import ShareRow, share_rows
from monitoring.views.page import scope_of, show

READ, EDIT = "config:read", "share:edit"


@page_requires(READ)
@require_http_methods(["GET", "HEAD", "POST"])
def shares_edit(request: HttpRequest) -> HttpResponseBase:
    """Read with GET; tried with POST, which writes nothing: whoever may read the configuration may try."""
    return _tried(request) if request.method == "POST" else _as_it_is(request)


def _as_it_is(request: HttpRequest) -> HttpResponseBase:
    """The tree of the VO that the address names, or else of the first."""
    vos, standings = _vos(request)
    vo = request.GET.get("vo", "") or (vos[0] if vos else "")
    _refuse_other_vos(request, vo)
    rows = stored_rows(vo) if vo else []
    return _shown(request, vo, vos, rows, standings, {"base": newest_revision()}, knows=("vo",))


def _tried(request: HttpRequest) -> HttpResponseBase:
    """Sums, faults and, unless only the open form asks while it is typed in, what it would have meant."""
    vos, standings = _vos(request)
    vo = request.POST.get("vo", "")
    _refuse_other_vos(request, vo)
    rows: list[EditedRow] = []
    problems: Sequence[Problem] = ()
    steps: list[Step] = []
    trial: SteeringTrial | None = None
    try:
        rows = sent_rows(request.POST)
        lines = draft_of(rows, vo)
        with reading_only():
            if lines:
                steps = preview(Draft(lines, "", "", "page", base=sent_base(request.POST)))
            if request.headers.get("HX-Request") != "true":
                trial = steering_trial(steps, clock.now())
    except BadConfig as bad:
        problems = bad.problems
    others = put_problems(rows, problems)
    asked = request.headers.get("HX-Request") != "true"
    checked = asked and not problems
    context: dict[str, Any] = {
        "base": request.POST.get("base", ""),
        "problems": others,
        "n_problems": len(problems),
        "stale": any(problem.rule == "stale" for problem in problems),
        "steps": steps if checked else [],
        "changed": sum(row.changed for row in rows),
        "trial": trial if checked else None,
        "checked": checked,
    }
    return _shown(request, vo, vos, rows, standings, context, status=400 if problems and asked else 200, knows=("vo",))


def _shown(
    request: HttpRequest,
    vo: str,
    vos: Sequence[str],
    rows: Sequence[EditedRow],
    standings: Sequence[ShareRow],
    context: dict[str, Any],
    status: int = 200,
    knows: Sequence[str] = (),
) -> HttpResponseBase:
    here = {share.name: share for share in standings if share.vo == vo and share.kind == "share"}
    for row in rows:
        row.stands = here.get(row.name)
    told: dict[str, Any] = {
        "vo": vo,
        "vos": vos,
        "rows": rows,
        "sums": add_sums(rows),
        "names": [row.name for row in rows if row.name and not row.removed],
        "may_edit": may(authenticate(request), EDIT, vo),
        "asks_password": not password_is_fresh(request.session),
    }
    return show(request, "shares_edit.html", "shares", {**told, **context}, status=status, knows=knows)


def _vos(request: HttpRequest) -> tuple[list[str], list[ShareRow]]:
    """The VOs that the visitor looks into and that have shares, and where their shares stand."""
    standings = share_rows(scope_of(request, READ))
    mine = visible_vos(authenticate(request), EDIT).names
    return sorted(mine | {share.vo for share in standings if share.kind == "share"}), standings


def _refuse_other_vos(request: HttpRequest, vo: str) -> None:
    """404 for a VO that the visitor does not look into."""
    if vo and vo not in visible_vos(authenticate(request), READ):
        raise Http404(f"You do not look into a VO {vo[:40]}.")
