"""The form of a log line: one line, UTC, and nothing in a message can begin a line of its own."""

from __future__ import annotations

import logging
import time


class OneLine(logging.Formatter):
    """A formatter whose times are UTC and which writes line breaks inside messages as `\\n`, tracebacks apart."""

    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def converter(self, seconds: float | None) -> time.struct_time:
        """Times are UTC."""
        return time.gmtime(seconds)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        return super().formatMessage(record).replace("\r", "\\r").replace("\n", "\\n")
