"""A fault that repeats is written once and counted."""

from __future__ import annotations

import io
import logging

import pytest

from broker_site.foundation import logs
from broker_site.foundation.logs import FaultOnce


@pytest.fixture
def written() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def logger(written: io.StringIO) -> logging.Logger:
    made = logging.getLogger("outage")
    made.handlers, made.propagate, made.level = [FaultOnce(written)], False, logging.INFO
    return made


def fail(logger: logging.Logger, text: str) -> None:
    try:
        raise OSError(text)
    except OSError:
        logger.exception("agent generate failed")


def test_a_repeated_fault_is_one_line_with_a_count(logger: logging.Logger, written: io.StringIO) -> None:
    for n in range(1500):
        fail(logger, f"too many clients, try {n}/None after {n / 7:.2f} s at 0x{n:08x}")
    assert written.getvalue().count("Traceback") == 1
    logger.handlers[0].close()
    assert written.getvalue().splitlines()[-1].startswith("1499 times more until ")
    assert "agent generate failed" in written.getvalue().splitlines()[-1]


def test_different_faults_and_plain_news_are_all_written(logger: logging.Logger, written: io.StringIO) -> None:
    fail(logger, "disk full")
    fail(logger, "too many clients")
    for task in (5, 7, 5):
        logger.error("agent generate failed on task %s", task)
    for _ in range(2):
        logger.info("served")
    lines = written.getvalue().splitlines()
    assert [line for line in lines if "task" in line] == [f"agent generate failed on task {n}" for n in (5, 7)]
    assert (lines.count("served"), lines.count("OSError: disk full"), lines.count("OSError: too many clients")) == (2, 1, 1)


def test_a_fault_that_comes_back_is_written_again(
    logger: logging.Logger, written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: clock[0])
    for at in (0.0, 10.0, 20.0, 200.0):
        clock[0] = 1000.0 + at
        fail(logger, "disk full")
    assert written.getvalue().count("Traceback") == 2
    assert written.getvalue().count("2 times more until") == 1


def test_a_fault_that_lasts_is_counted_now_and_then(
    logger: logging.Logger, written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(logs.time, "monotonic", lambda: clock[0])
    for _ in range(3600):
        clock[0] += 1.0
        fail(logger, "disk full")
    assert written.getvalue().count("Traceback") == 1
    assert written.getvalue().count("times more until") == 5
