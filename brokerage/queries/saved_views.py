"""Saved views that somebody may see."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from broker_site.foundation.access.permissions import VoScope
from brokerage.models import SavedView


def visible_views(owner: str, scope: VoScope, using: str = "default") -> QuerySet[SavedView]:
    """Their own, and those that are shared with these VOs."""
    shared = ~Q(vo="") & scope.q("vo")
    return SavedView.objects.using(using).filter(Q(owner=owner) | shared)
