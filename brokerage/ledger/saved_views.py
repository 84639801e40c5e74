"""Saved views: kept and deleted, with the audit row in the same transaction."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.principal import Principal
from brokerage.models import SavedView

MOST = 100
"""Views that one user may keep."""


class NotSaved(Exception):
    """The view cannot be kept; nothing was changed. `field` and `rule`: what is wrong."""

    def __init__(self, field: str, rule: str, message: str) -> None:
        super().__init__(message)
        self.field, self.rule = field, rule


def save_view(by: Principal, list_name: str, name: str, query: str, vo: str) -> SavedView:
    """Keep a filter that was checked. Raises NotSaved: the name is taken, or there are too many."""
    if SavedView.objects.filter(owner=by.name).count() >= MOST:
        raise NotSaved("name", "number", f"you have {MOST} views; delete one before you save another")
    try:
        with transaction.atomic():
            made = SavedView.objects.create(owner=by.name, list_name=list_name, name=name, query=query, vo=vo)
            made.refresh_from_db()
            audit("view.save", by, f"view {made.id}", vo=vo, after=_values(made))
            return made
    except IntegrityError:
        raise NotSaved("name", "unique", f"you have a view {name!r} of this list; delete it, or choose another name") from None


def delete_view(by: Principal, view: SavedView) -> None:
    """Nobody sees it any more."""
    with transaction.atomic():
        audit("view.delete", by, f"view {view.id}", vo=view.vo, before=_values(view))
        view.delete()


def _values(view: SavedView) -> dict[str, str]:
    return {name: getattr(view, name) for name in ("list_name", "name", "query", "vo")}
