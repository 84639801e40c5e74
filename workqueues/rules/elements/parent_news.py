"""What an answer of the parent says of the parent itself (row X5): which it is, whether it was restored, and what is odd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from broker_site.foundation.outside_data import LARGEST
from workqueues.rules.elements.messages import Reply


class NotUsable(ValueError):
    """An answer that names no broker or no time; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class KnownParent:
    """The parent as we knew it."""

    instance: UUID | None = None
    incarnation: UUID | None = None


@dataclass(frozen=True, slots=True)
class ParentNews:
    """The parent as an answer shows it.

    `clock_ahead_s`: by how much its clock is ahead of ours. `restored`: it is not the one that we last told, so it is told all
    again. `circle`: we are above it, so nothing is pulled. `oddity`: what an operator should mend, in words; empty: nothing.
    """

    instance: UUID
    incarnation: UUID
    lineage: tuple[str, ...]
    clock_ahead_s: float
    restored: bool
    circle: bool
    oddity: str


def parent_news(known: KnownParent, reply: Reply, own: UUID, now: datetime, clock_error_s: float) -> ParentNews:
    """`own`: our instance; `now`: the middle between question and answer; `clock_error_s`: more than this is told.

    Raises NotUsable.
    """
    try:
        instance, incarnation = UUID(reply.instance), UUID(reply.incarnation)
        lineage = tuple(str(UUID(one)) for one in reply.lineage)
        ahead_s = (datetime.fromisoformat(reply.now) - now).total_seconds()
    except (ValueError, TypeError, OverflowError):
        raise NotUsable("the answer does not say which broker it is, or when it was given") from None
    circle = own == instance or str(own) in lineage
    changed = known.incarnation is not None and (known.incarnation, known.instance) != (incarnation, instance)
    return ParentNews(
        instance,
        incarnation,
        lineage,
        max(-float(LARGEST), min(ahead_s, float(LARGEST))),
        restored=changed,
        circle=circle,
        oddity=_oddity(own == instance, circle, lineage, ahead_s, clock_error_s),
    )


def _oddity(itself: bool, circle: bool, lineage: Sequence[str], ahead_s: float, clock_error_s: float) -> str:
    if itself:
        return "GRIDBROKER_PARENT is the address of this broker itself; nothing is pulled"
    if circle:
        return "a circle: the parent pulls from this broker, directly or through others; nothing is pulled"
    if abs(ahead_s) > clock_error_s:
        way = "ahead of" if ahead_s > 0 else "behind"
        return f"its clock is {timedelta(seconds=round(abs(ahead_s)))} {way} ours; leases do not depend on it, times shown do"
    return ""
