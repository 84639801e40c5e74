"""Descriptors of files that go out: however many are asked for, there is always one left, and each is closed in the end."""

from __future__ import annotations

import asyncio
import os

import pytest

from brokerage.storage_server import open_files
from brokerage.storage_server.open_files import OpenFiles, TooManyOpen


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_who_asks_for_more_than_may_be_open_waits_until_one_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_files, "TURN_S", 0.01)

    async def ask_for(n: int) -> tuple[list[int], int]:
        files, given, most = OpenFiles(most=3), [], 0
        for _ in range(n):
            await files.room()
            given.append(os.open(os.devnull, os.O_RDONLY))
            files.keep(given[-1])
            most = max(most, sum(map(is_open, set(given))))
        await asyncio.sleep(0.05 * open_files.TURNS)
        return given, most

    given, most = asyncio.run(ask_for(10))
    assert most == 3
    assert not any(map(is_open, given))


def test_where_none_is_closed_in_time_it_is_told_that_too_many_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_files, "TURN_S", 0.01)
    monkeypatch.setattr(open_files, "LONGEST_WAIT_S", 0.05)
    with pytest.raises(TooManyOpen):
        asyncio.run(OpenFiles(most=-1).room())
