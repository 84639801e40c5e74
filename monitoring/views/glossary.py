"""The page of all words that pages use."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase

from monitoring.glossary import sections
from monitoring.views.page import page, show


@page("task:read")
def glossary(request: HttpRequest) -> HttpResponseBase:
    """States, criteria and errors, each with what it means and what follows."""
    return show(request, "glossary.html", "glossary", {"sections": sections()})
