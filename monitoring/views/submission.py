"""What submission goes by at one site: its state and slots set by hand, tried before they are applied."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.permissions import may
from broker_site.foundation.access.sessions import password_is_fresh
from broker_site.foundation.gdpconfig.changesets import Draft, Line, named_line
from broker_site.foundation.gdpconfig.effects import effects_of
from broker_site.foundation.gdpconfig.keys import BadConfig
from broker_site.foundation.gdpconfig.store import preview
from broker_site.foundation.kernel.verdict import Problem
from brokerage.queries.submission_trial import SubmissionTrial, submission_trial
from brokerage.queries.what_if import reading_only
from brokerage.rules.submission.site_states import SETTABLE, SITE_LINE
from monitoring.queries.configuration import newest_revision
from monitoring.queries.submission import EDITED, site_edit
from monitoring.views.page import page, show

READ, EDIT = "config:read", "config:edit"
LABELS = dict(zip(EDITED, ("State", "CPU slots", "I/O slots"), strict=True))


@page(READ)
def submission_site(request: HttpRequest, name: str) -> HttpResponseBase:
    """The form, and what its values would lead to once it was sent; nothing is written here."""
    edit = site_edit(name)
    if edit is None:
        raise Http404(f"There is no site {name[:60]}.")
    asked = any(attribute in request.GET for attribute in EDITED)
    typed = {a: request.GET.get(a, "").strip() for a in EDITED} if asked else dict(edit.typed)
    problems: Sequence[Problem] = ()
    trial: SubmissionTrial | None = None
    differs = False
    line = line_of(name, typed)
    if asked:
        try:
            with reading_only():
                steps = preview(Draft([line], "", "", "page"))
                effects = effects_of(steps)
                differs = any(step.differs for step in steps)
                trial = submission_trial(steps, effects.before, effects.after)
        except BadConfig as bad:
            problems = [problem for problem in bad.problems if not (line.remove and problem.rule == "absent")]
    context: dict[str, Any] = {
        "edit": edit,
        "fields": [(a, label, typed[a], _of(problems, a), edit.document[a]) for a, label in LABELS.items()],
        "problems": [problem for problem in problems if not any(problem.field.endswith(a) for a in EDITED)],
        "settable": SETTABLE,
        "asked": asked,
        "checked": asked and not problems,
        "differs": differs,
        "trial": trial,
        "line": line,
        "value": "" if line.remove else json.dumps(line.value),
        "kind": SITE_LINE,
        "base": newest_revision(),
        "may_edit": may(authenticate(request), EDIT),
        "asks_password": not password_is_fresh(request.session),
    }
    return show(request, "submission_site.html", "submission", context, status=400 if problems else 200, knows=EDITED)


def line_of(name: str, typed: dict[str, str]) -> Line:
    """The line of a change set that sets what was typed; where that is nothing, one that removes it."""
    said = {attribute: text for attribute, text in typed.items() if text}
    return named_line(SITE_LINE, name, "", said or None, remove=not said)


def _of(problems: Sequence[Problem], attribute: str) -> str:
    told = (problem.message for problem in problems if problem.field.endswith(f".{attribute}"))
    return "; ".join(message.removeprefix(f"{attribute}: ") for message in told)
