"""A page as commands that can be copied."""

from __future__ import annotations

from typing import Any

from django import template
from django.template import Context

from monitoring.copied import of_list, of_object
from monitoring.tables.selection import Selection

register = template.Library()
PART = "monitoring/parts/copied.html"


def _site(context: Context) -> str:
    return str(context["request"].build_absolute_uri("/")).rstrip("/")


@register.inclusion_tag(PART, takes_context=True)
def list_commands(context: Context, name: str, selection: Selection) -> dict[str, Any]:
    """The commands that list the same as this page."""
    said = [(field, str(selection.parameters[field])) for field in selection.names if selection.parameters.get(field)]
    return {"commands": of_list(name, said, _site(context))}


@register.inclusion_tag(PART, takes_context=True)
def object_commands(context: Context, kind: str, name: object) -> dict[str, Any]:
    """The commands that show the same thing as this page."""
    return {"commands": of_object(kind, name, _site(context))}
