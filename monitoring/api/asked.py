"""Words of a query string that a view reads by itself."""

from __future__ import annotations

from collections.abc import Sequence

from rest_framework.request import Request

from broker_site.foundation.access.problems import Refused
from broker_site.foundation.kernel.verdict import Problem

LONGEST = 256
"""Characters of a word that is asked for."""


def take_only(request: Request, known: Sequence[str]) -> dict[str, str]:
    """What is said for each name, empty where nothing is. Refused(400) for other names, and for what is too long or has a NUL."""
    wrong = [
        Problem(name[:100], "unknown", f"not known here; there are: {', '.join(known)}")
        for name in request.query_params
        if name not in known
    ]
    said = {name: request.query_params.get(name, "").strip() for name in known}
    wrong += [Problem(name, "max_length", f"at most {LONGEST} characters") for name, text in said.items() if len(text) > LONGEST]
    wrong += [Problem(name, "null_characters_not_allowed", "without NUL") for name, text in said.items() if "\0" in text]
    if wrong:
        raise Refused(400, "Not valid", "; ".join(f"{p.field}: {p.message}" for p in wrong), wrong)
    return said
