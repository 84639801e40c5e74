"""`manage.py token`: make and revoke credentials from the shell. The secret is the only line on stdout, shown this once."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from broker_site.foundation.access.credentials import (
    IssuedCredential,
    enrolment_faults,
    ensure_user,
    forget_expired,
    issue_enrolment,
    issue_user_token,
    revoke,
)
from broker_site.foundation.access.models import Credential, User
from broker_site.foundation.access.roles import ROLES

_DAY_S = 86_400


class Command(BaseCommand):
    help = "Make or revoke tokens of users and enrolment secrets of queues."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="a token of a user")
        create.add_argument("user")
        create.add_argument("--role", action="append", default=[], choices=ROLES, help="leave the token only these roles")
        create.add_argument("--grant", action="store_true", help="make the user if there is none and give it the roles first")
        enrol = verbs.add_parser("enrol", help="a secret with which the pilots of a computing queue enrol")
        enrol.add_argument("queues", nargs="+", metavar="queue", help="one queue, or several of one site")
        enrol.add_argument("--site", default="", help="the site of the queues; needed where there are several")
        enrol.add_argument("--private", action="store_true", help="its pilots do the work of one owner only")
        enrol.add_argument("--owner", default="", help="with --private: the user whose work they do")
        enrol.add_argument("--owner-group", default="", help="with --private: in this working group only")
        enrol.add_argument("--user", default="", help="let it stand on this user's role of operator")
        for verb in (create, enrol):
            verb.add_argument("--vo", default="", help="limit it to this VO")
            verb.add_argument("--days", type=float, default=365.0, help="days until it expires (365)")
            verb.add_argument("--note", default="")
        revoking = verbs.add_parser("revoke", help="revoke the credential with this prefix; of an enrolment also its pilots")
        revoking.add_argument("prefix")
        verbs.add_parser("prune", help="forget credentials that expired more than 30 days ago")

    def handle(self, *args: Any, **options: Any) -> None:
        """Carry out one sub-command; CommandError with what is wrong."""
        verb = options["verb"]
        if verb == "revoke":
            self.stdout.write(f"{self._revoke(options['prefix'])} revoked")
        elif verb == "prune":
            self.stdout.write(f"{forget_expired()} forgotten")
        else:
            if not 0 < options["days"] <= 36_500:
                raise CommandError("--days must be above 0 and at most 36500")
            issued = self._create(options) if verb == "create" else self._enrol(options)
            row = issued.credential
            self.stderr.write(f"{row.kind} credential {row.prefix}, good until {row.expires_at:%Y-%m-%d}; shown this once:")
            self.stdout.write(issued.text)

    @transaction.atomic
    def _create(self, options: dict[str, Any]) -> IssuedCredential:
        vo, roles = options["vo"], options["role"]
        if options["grant"]:
            if not (vo and roles):
                raise CommandError("--grant needs --vo and --role")
            _check_name(options["user"])
            ensure_user(options["user"], roles=[(vo, role) for role in roles])
        user = _user(options["user"])
        held = set(user.roles.filter(**({"vo": vo} if vo else {})).values_list("role", flat=True))
        if vo and not (held or user.is_superuser):
            raise CommandError(f"{user.username} has no role in {vo}; --grant with --role gives one")
        if missing := sorted(set(roles) - held):
            where = f"in {vo}" if vo else "in any VO"
            raise CommandError(f"{user.username} is not {', '.join(missing)} {where}; --grant gives the role")
        return issue_user_token(user, vo=vo, roles=roles, seconds=options["days"] * _DAY_S, note=options["note"])

    def _enrol(self, options: dict[str, Any]) -> IssuedCredential:
        queues, given = options["queues"], {name: options[name] for name in ("site", "owner", "owner_group")}
        if faults := enrolment_faults(queues, **given, private=options["private"]):
            raise CommandError("; ".join(f"{field}: {words}" for field, words in faults.items()))
        user = _user(options["user"]) if options["user"] else None
        return issue_enrolment(
            *queues, **given, vo=options["vo"], user=user, seconds=options["days"] * _DAY_S, note=options["note"]
        )

    def _revoke(self, prefix: str) -> int:
        credentials = list(Credential.objects.filter(prefix=prefix[:12]))
        if not credentials:
            raise CommandError(f"no credential has the prefix {prefix[:12]!r}")
        return revoke(credentials, reason="manage.py token revoke")


def _check_name(name: str) -> None:
    """A new user gets a name that the admin takes too."""
    try:
        if not User.objects.filter(username=name).exists():
            User._meta.get_field("username").run_validators(name)
    except ValidationError as bad:
        raise CommandError(f"the name {name!r} cannot be a user's: {' '.join(bad.messages)}") from None


def _user(name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"there is no user {name!r}; --grant makes one")
    return user
