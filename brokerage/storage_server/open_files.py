"""Descriptors of files that granian opens anew by their number once it has the answer: they stay open for so long, not longer.

When granian has opened one it does not say. It takes milliseconds, but a process may be frozen in them; so their time is counted
in turns of the loop, which a freeze does not make. A descriptor that is closed too early may be another file's when it is opened.
"""

from __future__ import annotations

import asyncio
import os
import resource
from collections import deque

TURNS, TURN_S = 5, 1.0
LONGEST_WAIT_S = 10.0


class TooManyOpen(Exception):
    """So many files are read just now that there is no descriptor for another one."""


class OpenFiles:
    """The descriptors of one server process. `most`: half of what the process may have, the rest is for connections."""

    def __init__(self, most: int = 0) -> None:
        self.most = most or resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2
        self._turns: deque[list[int]] = deque([[]], TURNS + 1)
        self._turning = False

    async def room(self) -> None:
        """Wait until one more may be kept. Raises TooManyOpen."""
        for _ in range(int(LONGEST_WAIT_S / TURN_S)):
            if sum(map(len, self._turns)) < self.most:
                return
            await asyncio.sleep(TURN_S)
        raise TooManyOpen("too many files are read just now")

    def keep(self, fd: int) -> None:
        """Close this one when its time is over."""
        self._turns[-1].append(fd)
        if not self._turning:
            self._turning = True
            asyncio.get_running_loop().call_later(TURN_S, self._turn)

    def _turn(self) -> None:
        if len(self._turns) > TURNS:
            for fd in self._turns.popleft():
                os.close(fd)
        self._turns.append([])
        self._turning = any(self._turns)
        if self._turning:
            asyncio.get_running_loop().call_later(TURN_S, self._turn)
