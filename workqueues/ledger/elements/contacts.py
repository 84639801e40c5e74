"""What this broker keeps of its children at each of their messages; one that came back from a backup loses what it has (J5)."""

from __future__ import annotations

from datetime import datetime, timedelta

from broker_site.foundation.gdpconfig.texts import duration_text
from workqueues.ledger.elements.returning import take_all_back
from workqueues.models import ChildBroker
from workqueues.queries.speakers import Speaker
from workqueues.rules.elements.messages import Hello

RESTORED = "an older state of its child came back, which has lost count of what it told"
ANOTHER = "another broker speaks with the token of its child"


class TooSoon(Exception):
    """A child is not the one that it was, once more within a while; the message is a sentence for its operator."""


def meet(child: Speaker, hello: Hello, now: datetime, pause_s: float) -> None:
    """Note that a child spoke. All that it has is taken back where it is not the one that it was. Raises TooSoon."""
    take_back_of_another(child, hello, now, pause_s)
    ChildBroker.objects.filter(id=child.id).update(
        instance=hello.instance,
        incarnation=hello.incarnation,
        version=hello.version,
        protocol=hello.protocol,
        clock_ahead_s=(hello.now - now).total_seconds(),
        last_contact=now,
    )


def take_back_of_another(child: Speaker, hello: Hello, now: datetime, pause_s: float) -> None:
    """Take back all that a child has where it is not the one that it was, which stands with it; else note nothing.

    Raises TooSoon where that was so within `pause_s`, as where two brokers have one token: each would take from the other what it
    works on, with every message.
    """
    if child.known is None or child.known == (hello.instance, hello.incarnation):
        return
    why = RESTORED if child.known[0] == hello.instance else ANOTHER
    lately = ChildBroker.objects.filter(
        id=child.id, last_error__in=(RESTORED, ANOTHER), last_error_at__gt=now - timedelta(seconds=pause_s)
    )
    if lately.exists():
        raise TooSoon(f"{why}, as within the last {duration_text(pause_s)} already: each broker needs a token of its own")
    take_all_back(child.id, why, f"child:{child.name}")
    note_error(child, why, now)
    ChildBroker.objects.filter(id=child.id).update(instance=hello.instance, incarnation=hello.incarnation)


def note_error(child: Speaker, error: str, now: datetime) -> None:
    """A message of a child could not be taken, and why."""
    ChildBroker.objects.filter(id=child.id).update(last_contact=now, last_error=error[:510], last_error_at=now)
