"""The user of a session, read with the roles that it has: each page asks for both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.contrib.auth.backends import ModelBackend
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef
from django.db.models.functions import JSONObject

from broker_site.foundation.access.models import Role, User


class PasswordBackend(ModelBackend):
    """Django's own, with one statement where a session is read."""

    def get_user(self, user_id: int) -> User | None:
        """The user with `held_roles`; None where there is none, or it is not active."""
        held = Role.objects.filter(user=OuterRef("pk")).values(json=JSONObject(vo="vo", role="role"))
        user = User.objects.annotate(held_roles=ArraySubquery(held)).filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None


def all_roles(user: User) -> Mapping[str, frozenset[str]]:
    """VO -> roles of the user in it; one statement, none where they were read with the user."""
    rows: Iterable[Mapping[str, str]] | None = getattr(user, "held_roles", None)
    held: dict[str, set[str]] = {}
    for row in user.roles.values("vo", "role") if rows is None else rows:
        held.setdefault(row["vo"], set()).add(row["role"])
    return {vo: frozenset(roles) for vo, roles in held.items()}
