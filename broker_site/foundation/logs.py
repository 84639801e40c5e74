"""The form of a log line: one line, UTC, nothing in a message begins a line of its own; and how much what is worth."""

from __future__ import annotations

import logging
import time


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
