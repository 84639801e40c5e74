"""What the supervisor tells: one line for a cause, however often it repeats, and one when it is over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to `subject`. `cause` is what may repeat; without one, all is well again."""

    subject: str
    cause: str
    text: str


@dataclass(slots=True)
class Trouble:
    """A cause that has been told, and how often it has come."""

    cause: str
    times: int = 1


class Console:
    """Passes lines on to `say`."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._troubles: dict[str, Trouble] = {}

    def tell(self, event: Event) -> None:
        """Say the event, unless its cause has been told already."""
        known = self._troubles.get(event.subject)
        if not event.cause:
            self._troubles.pop(event.subject, None)
            if known and event.text:
                times = f", after {known.times} times" if known.times > 1 else ""
                self._say(f"{event.text}{times}")
        elif known and known.cause == event.cause:
            known.times += 1
        else:
            self._troubles[event.subject] = Trouble(event.cause)
            self._say(event.text)
