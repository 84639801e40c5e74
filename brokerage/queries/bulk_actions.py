"""Acts on many tasks or jobs that somebody may see, and stop."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Q, QuerySet

from broker_site.foundation.access.permissions import may
from broker_site.foundation.access.principal import Principal
from brokerage.models import BulkAction

READ, OF_OTHERS = "bulk:read", "job:kill"
"""Whoever has the latter for jobs of anybody may stop acts of anybody there."""


def actions_of(caller: Principal, using: str = "default") -> QuerySet[BulkAction]:
    """One's own; of others, an operator those that have rights in no VO beside the operator's; a superuser all.

    Whoever shows a token that is limited has of one's own those alone that have rights in no VO beside the token's.
    """
    actions = BulkAction.objects.using(using)
    if caller.superuser:
        return actions
    own = Q(user=caller.user)
    if caller.limited:
        own &= _within(vo for vo in caller.roles if may(caller, READ, vo, caller.name))
    return actions.filter(own | _within(vo for vo in caller.roles if may(caller, OF_OTHERS, vo, "")))


def _within(vos: Iterable[str]) -> Q:
    """Acts that have rights in these VOs and in no other."""
    return Q(vos__len__gt=0, vos__contained_by=list(vos), rights__superuser=False)


def may_stop(caller: Principal, action: BulkAction) -> bool:
    """Whether somebody who sees an act may stop it: whoever asked for it, and operators."""
    own = caller.user is not None and action.user_id == caller.user.pk
    return own or caller.superuser or bool(action.vos and all(may(caller, OF_OTHERS, vo, "") for vo in action.vos))
