"""The form of a log line: one line, UTC, nothing in a message begins a line of its own; and how much what is worth.

A fault that repeats is written once, with its trace, and once more with a count when it has ended: an outage makes no more lines
for lasting longer.
"""

from __future__ import annotations

import copy
import logging
import re
import time
from dataclasses import dataclass
from typing import TextIO

ENDED_S = 60.0
"""A fault has ended when it has not come for so long."""
LASTING_S = 600.0
"""One that does not end is counted again after so long."""
MOST_FAULTS = 500
"""So many different ones are kept apart at a time."""
VARYING = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8}[0-9a-f-]*\b|\d+\.\d+|\b\d+/(?:\d+|None|inf)\b")
"""What differs each time in the text of one fault: addresses, identifiers, seconds, counts of tries. Ids of tasks do not."""

Key = tuple[str, int, str, str]


class OneLine(logging.Formatter):
    """A formatter whose times are UTC and which writes line breaks inside messages as `\\n`, tracebacks apart."""

    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def converter(self, seconds: float | None) -> time.struct_time:
        return time.gmtime(seconds)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        return super().formatMessage(record).replace("\r", "\\r").replace("\n", "\\n")


class ExternalFault(logging.Filter):
    """Makes a warning without a traceback of what a logger has as an error: anybody can send what it is about."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
        record.exc_info = record.exc_text = None
        return True


@dataclass(slots=True)
class Repetition:
    """A fault that goes on: its first record, how often it came since it was last told, and when."""

    first: logging.LogRecord
    told_at: float
    last_at: float
    last_created: float
    times: int = 0


class FaultOnce(logging.StreamHandler[TextIO]):
    """Writes warnings and errors that repeat once, and later how often they came."""

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        self._faults: dict[Key, Repetition] = {}
        self._looked_at = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, or count it."""
        now = time.monotonic()
        if now - self._looked_at >= 1.0:
            self._looked_at = now
            self._tell_counts(now)
        if record.levelno < logging.WARNING:
            super().emit(record)
            return
        key = _key(record)
        if known := self._faults.get(key):
            known.times, known.last_at, known.last_created = known.times + 1, now, record.created
            return
        if len(self._faults) >= MOST_FAULTS:
            self._tell_all()
        self._faults[key] = Repetition(record, now, now, record.created)
        super().emit(record)

    def close(self) -> None:
        """Tell the counts that are left."""
        self.acquire()
        try:
            self._tell_all()
        finally:
            self.release()
        super().close()

    def _tell_counts(self, now: float) -> None:
        """Tell how often faults came that have ended or last for long."""
        for key, fault in list(self._faults.items()):
            ended = now - fault.last_at > ENDED_S
            if ended or now - fault.told_at > LASTING_S:
                self._tell(fault)
                fault.told_at = now
            if ended:
                del self._faults[key]

    def _tell_all(self) -> None:
        for fault in self._faults.values():
            self._tell(fault)
        self._faults.clear()

    def _tell(self, fault: Repetition) -> None:
        """A line with the count, if there is something to count."""
        if not fault.times:
            return
        line = copy.copy(fault.first)
        until = time.strftime("%H:%M:%S", time.gmtime(fault.last_created))
        line.msg, line.args = f"{fault.times} times more until {until}: {fault.first.getMessage()[:300]}", ()
        line.created, line.msecs = time.time(), 0.0
        line.exc_info = line.exc_text = line.stack_info = None
        fault.times = 0
        super().emit(line)


def _key(record: logging.LogRecord) -> Key:
    """What tells one fault from another."""
    error = record.exc_info[1] if record.exc_info else None
    about = f"{type(error).__name__}: {error}" if error else ""
    return record.name, record.lineno, VARYING.sub("#", record.getMessage()), VARYING.sub("#", about)
