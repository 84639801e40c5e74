"""The configuration: all keys, one key, a draft with what it would lead to, and one set of changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponseBase, JsonResponse

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.permissions import may
from broker_site.foundation.access.problems import problem_response
from broker_site.foundation.access.sessions import password_is_fresh
from broker_site.foundation.gdpconfig.changesets import CONFIG, Draft, as_text, differences
from broker_site.foundation.gdpconfig.draft_form import FIELDS, draft_lines, sent_base, sent_rows
from broker_site.foundation.gdpconfig.effects import effects_of
from broker_site.foundation.gdpconfig.keys import APP, BadConfig
from broker_site.foundation.gdpconfig.listing import Effective
from broker_site.foundation.gdpconfig.models import Change
from broker_site.foundation.gdpconfig.store import preview
from broker_site.foundation.gdpconfig.two_person import takes_two
from broker_site.foundation.gdpconfig.visible_lines import hidden
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.verdict import Problem
from brokerage.queries.config_replay import replayed
from brokerage.queries.steering_trial import steering_trial
from brokerage.queries.submission_trial import submission_trial
from brokerage.queries.what_if import reading_only
from monitoring.queries.configuration import (
    ConfigRow,
    config_keys,
    config_rows,
    find_set,
    key_page,
    newest_revision,
    told,
)
from monitoring.tables.exports import json_answer
from monitoring.tables.selection import not_known
from monitoring.views.export import export
from monitoring.views.page import page, scope_of, show

READ, EDIT, DRAFT = "config:read", "config:edit", "change:draft"
KNOWN = ("q", "overridden")
MOST_CANDIDATES = 50


@page(READ)
def config(request: HttpRequest, **named: str) -> HttpResponseBase:
    """All keys by component, filtered by words and by whether an override is set."""
    form = named.get("format", "html")
    words, only = request.GET.get("q", ""), request.GET.get("overridden", "")
    fault = Problem("overridden", "value", "yes, or left out") if only not in ("", "yes") else None
    if form != "html" and (wrong := [*([fault] if fault else []), *not_known(request.GET, (*KNOWN, "live"))]):
        return problem_response(400, "Not valid", "Each fault is listed in errors.", wrong)
    found = config_keys(words, overridden=only == "yes") if not fault else []
    if form == "csv":
        return export(request, ConfigRow, config_rows(found), "config")
    if form == "json":
        return json_answer(config_rows(found), {"revision": newest_revision(), "as_of": clock.now()})
    groups: dict[str, list[Effective]] = {}
    for row in found:
        groups.setdefault(row.component if row.app == APP else f"{row.app}:{row.component}", []).append(row)
    context: dict[str, Any] = {
        "groups": groups,
        "n": len(found),
        "q": words,
        "only": only,
        "fault": fault,
        "query": request.GET.urlencode(),
        "revision": newest_revision(),
        "may_edit": may(authenticate(request), EDIT),
    }
    return show(request, "config.html", "config", context, status=400 if fault else 200, knows=KNOWN)


@page(READ)
def config_key(request: HttpRequest, key: str) -> HttpResponseBase:
    """What a key means, what holds, who changed it, and the form that begins a draft."""
    found = key_page(key)
    if found is None:
        raise Http404(f"There is no configuration key {key[:100]}.")
    changes = [(change, told(change)) for change in found.changes]
    context = {"found": found, "row": found.row, "changes": changes, "revision": newest_revision(), "may_edit": _may(request)}
    return show(request, "config_key.html", "config", context)


@page(READ)
def config_draft(request: HttpRequest) -> HttpResponseBase:
    """What lines of a change would lead to, and the form that applies them. Nothing is written."""
    try:
        return draft_page(request, sent_rows(request.GET), sent_base(request.GET), (), {})
    except BadConfig as bad:
        return draft_page(request, [], None, bad.problems, {})


def draft_page(
    request: HttpRequest, rows: list[dict[str, str]], number: int | None, problems: Sequence[Problem], more: dict[str, Any]
) -> HttpResponseBase:
    """The page of a draft with these lines, which rest on that revision; `problems`: why there are none; `more`: of an import."""
    effects = replay = trial = submission = None
    base = request.GET.get("base", "")
    try:
        if rows:
            with reading_only():
                lines = draft_lines(rows)
                if unseen := list(hidden(scope_of(request, READ), lines)):
                    raise BadConfig(*unseen)
                steps = preview(Draft(lines, "", "", "page", base=number))
                effects, trial = effects_of(steps), steering_trial(steps, clock.now())
                submission = submission_trial(steps, effects.before, effects.after)
                replay = replayed(effects.before, effects.after) if effects.of_keys else None
    except BadConfig as bad:
        problems = bad.problems
    context: dict[str, Any] = {
        "rows": rows,
        "problems": problems,
        "stale": any(problem.rule == "stale" for problem in problems),
        "effects": effects,
        "differs": effects is not None and any(line.differs for line in effects.lines),
        "takes_two": effects is not None and settings.TWO_PERSON and any(takes_two(e.place) for e in effects.lines if e.differs),
        "replay": replay,
        "trial": trial,
        "submission": submission,
        "candidates": list(replay.tally.candidates())[:MOST_CANDIDATES] if replay else [],
        "base": base or (effects.revision if effects else ""),
        "may_edit": _may(request, DRAFT),
        "asks_password": not password_is_fresh(request.session),
        **more,
    }
    return show(request, "config_draft.html", "config", context, status=400 if problems else 200, knows=(*FIELDS, "base"))


@page(READ, ())
def change_set(request: HttpRequest, revision: int, data: bool = False) -> HttpResponseBase:
    """One set of changes with its lines, and the form that takes it back."""
    made = find_set(scope_of(request, READ), revision)
    if made is None:
        raise Http404(f"There is no change set {revision}.")
    lines = list(made.lines.all())
    takes_back = [other.revision for other in made.reverted_by.all()]
    if data:
        names = ("kind", "app", "component", "name", "vo", "before", "until_before", "after", "until")
        document = {name: getattr(made, name) for name in ("revision", "at", "who", "why", "ticket", "source", "approved_by")}
        told_lines = [{"key": line.place.key} | {name: getattr(line, name) for name in names} for line in lines]
        n_hidden = made.n_hidden  # type: ignore[attr-defined]
        told_sets = {"reverts": made.reverts_id, "reverted_by": takes_back}
        return JsonResponse({**document, **told_sets, "lines": told_lines, "n_hidden": n_hidden})
    context = {
        "made": made,
        "lines": [(line, _columns(line)) for line in lines],
        "reverted_by": takes_back,
        "may_edit": _may(request, DRAFT),
        "asks_password": not password_is_fresh(request.session),
    }
    return show(request, "change_set.html", "changes", context)


def _columns(line: Change) -> list[tuple[str, str, str]]:
    """Columns of a row that its line changed, before and after."""
    if line.kind == CONFIG:
        return []
    return [(name, as_text(old), as_text(new)) for name, old, new in differences(line.before, line.after)]


def _may(request: HttpRequest, right: str = EDIT) -> bool:
    return may(authenticate(request), right)
