"""Seals of the audit: batches of its rows, chained by hashes, so that a change made behind its back shows.

A seal holds a digest of each row of its batch; its hash covers them and the hash of the seal before. Whoever may change
everything could seal anew from some row on: then the hash of a later seal differs from the one that was logged when it was
made, or noted elsewhere (`check_audit --expect`).
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db import OperationalError, connection, transaction

from broker_site.foundation.access.models import Audit, AuditSeal

BATCH, MOST_BATCHES = 1000, 100
PATIENCE_MS = 300
"""How long sealing may keep the writers of rows waiting, while it waits for those that have not committed yet."""
DIGEST = 16
ENTRY = 8 + DIGEST
"""Bytes that a seal keeps of a row: its number and its digest."""
FIRST = "0" * 64
"""Stands for the hash of a seal before the first."""
COLUMNS = (
    "id", "at", "who", "kind", "prefix", "vo", "act", "object", "outcome", "status", "reason", "before", "after", "trace_id",
)  # fmt: skip
_LOCK_NOT_AVAILABLE = "55P03"

logger = logging.getLogger(__name__)


def seal(batch: int = BATCH) -> int:
    """Seal the rows that are committed, so many at a time; how many. When writers keep it waiting, the next run does it."""
    last_id = _settled_id()
    if last_id is None:
        return 0
    sealed = 0
    for _ in range(MOST_BATCHES):
        before = AuditSeal.objects.order_by("-number").only("number", "last_id", "hash").first()
        known = before.last_id if before else 0
        rows = list(_rows(known, last_id)[:batch])
        if not rows:
            break
        digests = b"".join(entry(row) for row in rows)
        number, last = (before.number + 1 if before else 1), int(rows[-1][0])
        chained = chain(before.hash if before else FIRST, number, last, digests)
        made = AuditSeal(number=number, last_id=last, n_rows=len(rows), digests=digests, hash=chained)
        if not AuditSeal.objects.bulk_create([made], ignore_conflicts=True) or not _is_ours(made):
            break  # another run is at it
        logger.info("audit sealed up to row %d, seal %d:%s", last, number, chained)
        sealed += len(rows)
    return sealed


def entry(row: tuple[Any, ...]) -> bytes:
    """What a seal keeps of a row, given in the order of COLUMNS."""
    plain = [value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value for value in row]
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return int(row[0]).to_bytes(8) + hashlib.sha256(text.encode()).digest()[:DIGEST]


def chain(before: str, number: int, last_id: int, digests: bytes) -> str:
    """The hash of a seal."""
    return hashlib.sha256(f"{before} {number} {last_id} ".encode() + digests).hexdigest()


def _rows(after: int, last: int) -> Any:
    return Audit.objects.filter(pk__gt=after, pk__lte=last).order_by("pk").values_list(*COLUMNS)


def _settled_id() -> int | None:
    """The largest number up to which no row can come any more; None when it cannot be told now."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [str(PATIENCE_MS)])
            cursor.execute("SELECT pg_advisory_xact_lock(hashtext('access_audit'))")
            cursor.execute("SELECT coalesce(max(id), 0) FROM access_audit")
            return int(cursor.fetchone()[0])
    except OperationalError as error:
        if getattr(error.__cause__, "pgcode", "") != _LOCK_NOT_AVAILABLE:
            raise
        return None


def _is_ours(made: AuditSeal) -> bool:
    return AuditSeal.objects.filter(pk=made.number, hash=made.hash).exists()


@dataclass(slots=True)
class AuditFindings:
    """What is wrong with the audit, in words, and how far it is sealed."""

    seals: int = 0
    rows: int = 0
    unsealed: int = 0
    oldest_unsealed: datetime | None = None
    head: str = ""
    """The last seal, `number:hash`: what to note elsewhere."""
    faults: list[str] = field(default_factory=list)


def check(expected: tuple[int, str] | None = None) -> AuditFindings:
    """Hold every row against its seal, and each seal against the one before; `expected`: number and hash noted earlier.

    May run beside a working system: what is sealed does not change any more.
    """
    findings = AuditFindings()
    before, last_id = FIRST, 0
    for made in AuditSeal.objects.order_by("number").iterator(chunk_size=20):
        findings.seals += 1
        digests = bytes(made.digests)
        if made.number != findings.seals:
            findings.faults.append(f"seals {findings.seals} to {made.number - 1} were removed: nothing vouches for their rows")
            findings.seals, last_id = made.number, int.from_bytes(digests[:8]) - 1
        elif chain(before, made.number, made.last_id, digests) != made.hash or made.n_rows * ENTRY != len(digests):
            findings.faults.append(f"seal {made.number} was changed, or one before it")
        if expected and expected[0] == made.number and expected[1] != made.hash:
            findings.faults.append(f"seal {made.number} is not the one that was noted: the audit was sealed anew")
        findings.faults += _differences(digests, last_id, made.last_id)
        findings.rows += made.n_rows
        findings.head = f"{made.number}:{made.hash}"
        before, last_id = made.hash, made.last_id
    if expected and expected[0] > findings.seals:
        findings.faults.append(f"seal {expected[0]} was noted, and the last one is {findings.seals}: seals were removed")
    left = Audit.objects.filter(pk__gt=last_id)
    findings.unsealed = left.count()
    findings.oldest_unsealed = left.order_by("pk").values_list("at", flat=True).first()
    return findings


def _differences(digests: bytes, after: int, last: int) -> Iterator[str]:
    """A sentence for each row of a batch that is not as it was sealed."""
    sealed = {digests[i : i + 8]: digests[i : i + ENTRY] for i in range(0, len(digests), ENTRY)}
    for row in _rows(after, last).iterator(chunk_size=BATCH):
        now = entry(row)
        was = sealed.pop(now[:8], None)
        if was is None:
            yield f"row {row[0]} was inserted after its batch was sealed"
        elif was != now:
            yield f"row {row[0]} was changed"
    for number in sealed:
        yield f"row {int.from_bytes(number)} was removed"
