"""What this broker keeps of its children at each of their messages; one that came back from a backup loses what it has (J5)."""

from __future__ import annotations

from datetime import datetime, timedelta

from broker_site.foundation.gdpconfig.texts import duration_text
from workqueues.ledger.elements.returning import take_all_back
from workqueues.ledger.installation import Identity, identity
from workqueues.models import ChildBroker
from workqueues.queries.speakers import Speaker
from workqueues.rules.elements.messages import Hello

RESTORED = "an older state of its child came back, which has lost count of what it told"
ANOTHER = "another broker speaks with the token of its child"


class TooSoon(Exception):
    """A child is not the one that it was, once more within a while; the message is a sentence for its operator."""


class Circle(Exception):
    """A child is this broker, or one above it; the message is a sentence for its operator."""


def meet(child: Speaker, hello: Hello, now: datetime, pause_s: float) -> Identity:
    """Note that a child spoke: with whom. All that it has is taken back where it is not the one that it was.

    Raises Circle and TooSoon.
    """
    me = check_child(child, hello, now, pause_s)
    ChildBroker.objects.filter(id=child.id).update(
        instance=hello.instance,
        incarnation=hello.incarnation,
        version=hello.version,
        protocol=hello.protocol,
        clock_ahead_s=(hello.now - now).total_seconds(),
        last_contact=now,
    )
    return me


def if_as_known(child: Speaker, hello: Hello) -> Identity | None:
    """Who this broker is to a child, where `check_child` has nothing to do; else None."""
    if child.here is None or hello.instance in (child.here[0], *child.above):
        return None
    return Identity(*child.here) if child.known in (None, (hello.instance, hello.incarnation)) else None


def check_child(child: Speaker, hello: Hello, now: datetime, pause_s: float) -> Identity:
    """Who this broker is to a child. All that the child has is taken back where it is not the one that it was, which stands with
    it; else nothing is noted.

    Raises Circle, which is noted; and TooSoon where it was another within `pause_s`, as where two brokers have one token: each
    would take from the other what it works on, with every message.
    """
    me = Identity(*child.here) if child.here else identity()
    if hello.instance in (me.instance, *child.above):
        told = "this broker is its own child" if hello.instance == me.instance else "the child is above this broker already"
        note_error(child, told, now)
        raise Circle(told)
    if child.known is not None and child.known != (hello.instance, hello.incarnation):
        why = RESTORED if child.known[0] == hello.instance else ANOTHER
        _take_back_of_another(child, hello, why, now, pause_s)
    return me


def _take_back_of_another(child: Speaker, hello: Hello, why: str, now: datetime, pause_s: float) -> None:
    if ChildBroker.objects.filter(id=child.id, replaced_at__gt=now - timedelta(seconds=pause_s)).exists():
        raise TooSoon(f"{why}, as within the last {duration_text(pause_s)} already: each broker needs a token of its own")
    take_all_back(child.id, why, f"child:{child.name}")
    note_error(child, why, now)
    ChildBroker.objects.filter(id=child.id).update(instance=hello.instance, incarnation=hello.incarnation, replaced_at=now)


def note_error(child: Speaker, error: str, now: datetime) -> None:
    """A message of a child could not be taken, and why."""
    ChildBroker.objects.filter(id=child.id).update(last_contact=now, last_error=error[:510], last_error_at=now)
