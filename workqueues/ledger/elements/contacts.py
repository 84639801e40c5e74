"""What this broker keeps of its children at each of their messages; one that came back from a backup loses what it has (J5)."""

from __future__ import annotations

from datetime import datetime

from workqueues.ledger.elements.returning import take_all_back
from workqueues.models import ChildBroker
from workqueues.queries.speakers import Speaker
from workqueues.rules.elements.messages import Hello

RESTORED = "an older state of its child came back, which has lost count of what it told"
ANOTHER = "another broker speaks with the token of its child"


def meet(child: Speaker, hello: Hello, now: datetime) -> None:
    """Note that a child spoke. All that it has is taken back where it is not the one that it was."""
    take_back_of_another(child, hello)
    ChildBroker.objects.filter(id=child.id).update(
        instance=hello.instance,
        incarnation=hello.incarnation,
        version=hello.version,
        protocol=hello.protocol,
        clock_ahead_s=(hello.now - now).total_seconds(),
        last_contact=now,
    )


def take_back_of_another(child: Speaker, hello: Hello) -> None:
    """Take back all that a child has where it is not the one that it was, and do not note that it spoke."""
    if child.known is not None and child.known != (hello.instance, hello.incarnation):
        take_all_back(child.id, RESTORED if child.known[0] == hello.instance else ANOTHER, f"child:{child.name}")


def note_error(child: Speaker, error: str, now: datetime) -> None:
    """A message of a child could not be taken, and why."""
    ChildBroker.objects.filter(id=child.id).update(last_contact=now, last_error=error[:510], last_error_at=now)
