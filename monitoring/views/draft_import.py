"""A draft that somebody uploads or pastes, YAML or JSON, as lines of the page of drafts. Nothing is written."""

from __future__ import annotations

from dataclasses import replace

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from broker_site.foundation.access.guards import page_requires
from broker_site.foundation.access.permissions import VoScope
from broker_site.foundation.gdpconfig.changesets import CONFIG, Draft, Step
from broker_site.foundation.gdpconfig.draft_form import MOST_TYPED, REMOVE
from broker_site.foundation.gdpconfig.exchange import LARGEST, read_document
from broker_site.foundation.gdpconfig.keys import BadConfig
from broker_site.foundation.gdpconfig.store import preview
from broker_site.foundation.gdpconfig.visible_lines import hidden, sees
from broker_site.foundation.kernel.verdict import Problem
from brokerage.queries.what_if import reading_only
from monitoring.views.configuration import READ, draft_page
from monitoring.views.page import scope_of

TEXT, FILE, ONLY = "text", "file", "only"


@page_requires(READ)
@require_http_methods(["GET", "HEAD", "POST"])
def config_import(request: HttpRequest) -> HttpResponseBase:
    """The lines of the text that change something, and what they would lead to; or its faults, each with its line. Who comes by a
    link, or after signing in again, gets the form.
    """
    if request.method != "POST":
        return redirect("page-config-draft")
    text = request.POST.get(TEXT, "")
    try:
        text = _sent(request, text)
        rows = _rows(text, scope_of(request, READ), only=request.POST.get(ONLY) == "yes")
    except BadConfig as bad:
        return draft_page(request, [], None, bad.problems, {"text": text})
    if not rows:
        return draft_page(request, [], None, (), {"text": text, "holds": True})
    return draft_page(request, rows, None, (), {})


def _sent(request: HttpRequest, typed: str) -> str:
    """The file, or else what was typed. BadConfig where it cannot be read."""
    file = request.FILES.get(FILE)
    if file is None:
        return typed
    try:
        return bytes(file.read(4 * LARGEST)).decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise BadConfig(Problem("document", "format", f"the file is not UTF-8: byte {fault.start}")) from None


def _rows(text: str, scope: VoScope, *, only: bool) -> list[dict[str, str]]:
    """As the form of a draft sends them. What is not named is removed of what is seen alone. BadConfig."""
    read = read_document(text, only=only)
    kept = [(line, at) for line, at in zip(read.lines, read.places, strict=True) if at or sees(scope, line.kind, line.vo)]
    read = replace(read, lines=[line for line, _ in kept], places=[at for _, at in kept])
    if unseen := list(hidden(scope, read.lines)):
        raise read.located(BadConfig(*unseen))
    try:
        with reading_only():
            steps = [step for step in preview(Draft(read.lines, "", "", "page")) if step.differs]
    except BadConfig as bad:
        raise read.located(bad) from None
    if len(steps) > MOST_TYPED:
        told = f"it changes {len(steps)} lines, more than the {MOST_TYPED} of a form: `broker cfg apply` takes them"
        raise BadConfig(Problem("lines", "range", told))
    return [_row(step) for step in steps]


def _row(step: Step) -> dict[str, str]:
    place = step.place
    return {
        "key": place.key if place.kind == CONFIG else place.name,
        "vo": place.vo,
        "value": step.after or "",
        "until": step.until.isoformat() if step.until else "",
        "act": REMOVE if step.after is None else "set",
        "kind": "" if place.kind == CONFIG else place.kind,
    }
