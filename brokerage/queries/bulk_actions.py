"""Acts on many tasks or jobs that somebody may see, and stop."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from broker_site.foundation.access.permissions import may
from broker_site.foundation.access.principal import Principal
from brokerage.models import BulkAction

OF_OTHERS = "job:kill"
"""Whoever has it for jobs of anybody may stop acts of anybody there."""


def actions_of(caller: Principal, using: str = "default") -> QuerySet[BulkAction]:
    """One's own; of others, an operator those that have rights in no VO beside the operator's; a superuser all."""
    actions = BulkAction.objects.using(using)
    if caller.superuser:
        return actions
    operated = [vo for vo in caller.roles if may(caller, OF_OTHERS, vo, "")]
    return actions.filter(Q(user=caller.user) | Q(vos__contained_by=operated, rights__superuser=False))


def may_stop(caller: Principal, action: BulkAction) -> bool:
    """Whether somebody who sees an act may stop it: whoever asked for it, and operators."""
    own = caller.user is not None and action.user_id == caller.user.pk
    return own or caller.superuser or bool(action.vos and all(may(caller, OF_OTHERS, vo, "") for vo in action.vos))
