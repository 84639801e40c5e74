"""`manage.py children add|list|drain|undrain|revoke|renew`: brokers that pull work from this one. A token is the only line on
standard output, shown this once.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from broker_site.foundation.access.models import Role
from broker_site.foundation.access.principal import SYSTEM
from broker_site.foundation.kernel import clock
from workqueues.ledger.child_brokers import (
    BadChild,
    NewToken,
    add_child,
    drain_child,
    renew_child,
    revoke_child,
    undrain_child,
)
from workqueues.models import ChildBroker
from workqueues.queries.child_brokers import ChildRow, child_rows
from workqueues.rules.elements.child_names import USUAL_GRACE_S

_NAMED = {
    "drain": "give it nothing new; what it still has when the grace time is over is taken back",
    "undrain": "let it pull again",
    "revoke": "refuse its messages from now on; what it has returns when its leases are over",
    "renew": "make a new token for it; the one before is good no longer",
}


class Command(BaseCommand):
    help = "Let other brokers pull work from this one, list them, drain and revoke them."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        add = verbs.add_parser("add", help="let a broker pull: makes its token")
        add.add_argument("name")
        add.add_argument("--team", default="", help="it gets no elements of other teams")
        add.add_argument("--vo", default="", help="only elements of this VO; without it of all")
        verbs.add_parser("list", help="how each stands").add_argument("--json", action="store_true", help="as JSON")
        for verb, words in _NAMED.items():
            verbs.add_parser(verb, help=words).add_argument("name")
        drain, revoke = verbs.choices["drain"], verbs.choices["revoke"]
        drain.add_argument("--grace", type=float, default=USUAL_GRACE_S, metavar="S", help="seconds for what it has (a day)")
        revoke.add_argument("--reason", default="manage.py children revoke", help="for the audit")

    def handle(self, *args: Any, **options: Any) -> None:
        """Carry out one sub-command; CommandError with what is wrong, and nothing changed."""
        try:
            self._handle(options["verb"], options)
        except BadChild as bad:
            raise CommandError(str(bad)) from None

    def _handle(self, verb: str, options: dict[str, Any]) -> None:
        if verb == "add":
            if options["vo"] and not Role.objects.filter(vo=options["vo"]).exists():
                self.stderr.write(f"note: nobody has a role in the VO {options['vo']}, so there is no work of it yet")
            self._tell(add_child(options["name"], options["team"], options["vo"], SYSTEM))
        elif verb == "list":
            rows = child_rows()
            lines = [json.dumps([asdict(row) for row in rows], indent=1, default=str)] if options["json"] else list(_table(rows))
            self.stdout.write("\n".join(lines))
        else:
            self._act(verb, _named(options["name"]), options)

    def _act(self, verb: str, child: ChildBroker, options: dict[str, Any]) -> None:
        if verb == "drain":
            drained = drain_child(child, options["grace"], SYSTEM)
            self.stdout.write(
                f"{child.name} drains; what it still has is taken back at {drained.drain_until:%Y-%m-%d %H:%M:%S} UTC"
            )
        elif verb == "undrain":
            undrain_child(child, SYSTEM)
            self.stdout.write(f"{child.name} may pull again")
        elif verb == "revoke":
            done = revoke_child(child, SYSTEM, options["reason"])
            self.stdout.write(f"{child.name} is revoked" if done else f"{child.name} was revoked before")
        else:
            self._tell(renew_child(child, SYSTEM))

    def _tell(self, made: NewToken) -> None:
        vo = f"VO {made.child.vo}" if made.child.vo else "all VOs"
        self.stderr.write(f"token of the child broker {made.child.name} for the work of {vo}; shown this once:")
        self.stdout.write(made.secret)


def _named(name: str) -> ChildBroker:
    child = ChildBroker.objects.filter(name=name).first()
    if child is None:
        known = ", ".join(ChildBroker.objects.order_by("name").values_list("name", flat=True)[:20])
        raise CommandError(f"there is no child broker {name!r}; there are: {known or 'none'}")
    return child


def _table(rows: list[ChildRow]) -> Iterator[str]:
    if not rows:
        yield "no child broker"
    for row in rows:
        heard = "not heard of yet" if row.last_contact is None else f"heard of {_age(row.last_contact)} ago"
        least = "at least " if row.elements_bounded else ""
        has = ", ".join(f"{n} {state}" for state, n in row.elements.items()) or "no element"
        of = " ".join(filter(None, [row.vo and f"VO {row.vo}", row.team and f"team {row.team}"])) or "all VOs"
        sites = f"{row.n_sites} sites with {row.slots} slots"
        yield f"{row.name}: {row.state}, {heard}; {of}; version {row.version or 'not told'}; {sites}; {least}{has}"


def _age(at: datetime) -> str:
    seconds = (clock.now() - at).total_seconds()
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"
