"""What the last asks at queues got, and how many ended in which way. What became of an ask of another VO's jobs is not told,
nor, but to who sees all VOs, whose private pilots ask.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS

from broker_site.foundation.kernel import clock
from brokerage.models import AskHour, ComputingQueue, QueueAsk
from brokerage.rules.dispatch.queue_asks import OUTCOMES, ask_visible, offer_text, told_has
from brokerage.rules.dispatch.requirement import Misfit
from brokerage.rules.dispatch.why_nothing import GOT_JOBS, Nothing, sentence_of

MOST_ASKS = 100


@dataclass(frozen=True, slots=True)
class AskShown:
    """One ask: `offer` in words, `text` why there was nothing. `lacks`: attribute, what was needed, what there was."""

    at: datetime
    pilot_id: UUID
    outcome: str
    jobs: tuple[int, ...]
    offer: str
    text: str
    task_queue: int | None
    lacks: tuple[Mapping[str, str], ...]
    limits: tuple[str, ...]
    unknown: tuple[str, ...]
    took_ms: float

    @property
    def got(self) -> bool:
        return self.outcome == GOT_JOBS


@dataclass(frozen=True, slots=True)
class AskCount:
    """Asks that ended in one way: of the last ten minutes, hour and day; `minutes`: of that hour by the minute, oldest first."""

    outcome: str
    text: str
    ten_minutes: int
    hour: int
    day: int
    minutes: tuple[int, ...]

    @property
    def got(self) -> bool:
        return self.outcome == GOT_JOBS


@dataclass(frozen=True, slots=True)
class AsksAtQueue:
    """The last asks at a queue, newest first, and the numbers of all."""

    queue: str
    asks: tuple[AskShown, ...]
    counts: tuple[AskCount, ...]

    def to_document(self) -> dict[str, Any]:
        """As REST, the page's data and `explain --ask --json` have it."""
        asks = [{**asdict(ask), "at": ask.at.isoformat(), "pilot_id": str(ask.pilot_id)} for ask in self.asks]
        return {"queue": self.queue, "asks": asks, "counts": [asdict(count) for count in self.counts]}


def asks_at(queue: ComputingQueue, vos: Collection[str] | None = None, using: str = DEFAULT_DB_ALIAS) -> AsksAtQueue:
    """The last asks at a queue, with what they say of jobs of these VOs (None = all); two statements."""
    rows = QueueAsk.objects.using(using).filter(queue_id=queue.id).order_by("-id")[:MOST_ASKS]
    return AsksAtQueue(queue.name, shown_asks(rows, vos), tuple(_counts(queue.id, using)))


def shown_asks(rows: Iterable[QueueAsk], vos: Collection[str] | None = None) -> tuple[AskShown, ...]:
    """Stored asks with what they say of jobs of these VOs (None = all)."""
    return tuple(_shown(row, vos) for row in rows)


def _shown(row: QueueAsk, vos: Collection[str] | None) -> AskShown:
    visible = ask_visible(row.vo, bool(row.jobs), vos)
    told: Mapping[str, Any] = row.told if visible else {}
    lacks = [_lack(Misfit(**lack), whose=vos is None) for lack in told.get("lacks", ())]
    return AskShown(
        at=row.at,
        pilot_id=row.pilot_id,
        outcome=row.outcome,
        jobs=tuple(row.jobs) if visible else (),
        offer=offer_text(row.offer, whose=vos is None),
        text=_text(told, lacks) or sentence_of(row.outcome),
        task_queue=told.get("task_queue"),
        lacks=tuple(lack._asdict() for lack in lacks),
        limits=tuple(told.get("limits", ())),
        unknown=tuple(row.unknown),
        took_ms=row.took_ms,
    )


def _lack(lack: Misfit, whose: bool) -> Misfit:
    return lack._replace(has=told_has(lack.attribute, lack.has, whose))


def _text(told: Mapping[str, Any], lacks: Sequence[Misfit]) -> str:
    """The sentence: as it was told, and where it says what the pilot lacked, with what the reader may know of that."""
    if lacks:
        return Nothing(told["reason"], told["task_queue"] or 0, lacks).sentence
    return str(told.get("text", ""))


def _counts(queue_id: int, using: str) -> Sequence[AskCount]:
    now = clock.now().replace(second=0, microsecond=0)
    since = now - timedelta(hours=24)
    per_minute: dict[str, dict[datetime, int]] = {}
    for row in AskHour.objects.using(using).filter(queue_id=queue_id, hour__gt=since - timedelta(hours=1)):
        minutes = per_minute.setdefault(row.outcome, {})
        minutes.update({row.hour + timedelta(minutes=i): n for i, n in enumerate(row.minutes) if n})
    counts = []
    for outcome in OUTCOMES:
        if not (minutes := {at: n for at, n in per_minute.get(outcome, {}).items() if at > since}):
            continue
        last_hour = tuple(minutes.get(now - timedelta(minutes=back), 0) for back in range(59, -1, -1))
        counts.append(
            AskCount(outcome, sentence_of(outcome), sum(last_hour[-10:]), sum(last_hour), sum(minutes.values()), last_hour)
        )
    return counts
