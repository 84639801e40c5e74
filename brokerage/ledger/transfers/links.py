"""What operators say of a link between two sites: how much may be under way on it, and whether it is blocked for a while."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from broker_site.foundation.access.auditing import audit
from broker_site.foundation.access.principal import Principal
from broker_site.foundation.agency.look import look_after_commit
from brokerage.ledger.waits import grid_changed
from brokerage.models import TransferLink

NO_LIMITS: Mapping[str, Any] = {"max_active": None, "mb_per_s": None, "blocked_until": None, "blocked_why": ""}
"""A link of which nobody has said anything, which has no row."""


def edit_link(caller: Principal, source: str, destination: str, changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Set some of the limits of a link: all of them as they are now. Decisions see it at once."""
    with transaction.atomic():
        link, _ = TransferLink.objects.select_for_update().get_or_create(source_id=source, destination_id=destination)
        before = limits_of(link)
        after = {**before, **changes}
        for name, value in after.items():
            setattr(link, name, value)
        if after == NO_LIMITS and link.counted_since is None:  # else the row says what became of attempts
            link.delete()
        else:
            link.save(update_fields=list(after))
        changed = {name for name in after if after[name] != before[name]}
        audit(
            "link.edit", caller, f"link {source} to {destination}", reason=after["blocked_why"],
            before=_plain(before, changed), after=_plain(after, changed),
        )  # fmt: skip
        grid_changed()
        look_after_commit("transfer")
    return after


def limits_of(link: TransferLink | None) -> dict[str, Any]:
    """The limits that stand in the row of a link."""
    return dict(NO_LIMITS) if link is None else {name: getattr(link, name) for name in NO_LIMITS}


def _plain(limits: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {
        name: value if isinstance(value, int | float | str | None) else value.isoformat()
        for name, value in limits.items()
        if name in names
    }
