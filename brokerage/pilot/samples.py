"""What a payload used over time: memory and processor time at equal steps, few numbers however long it runs."""

from __future__ import annotations

from typing import Any

STEPS_S = (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86_400)
"""Lengths of a step, s, each a multiple of the one before."""
MOST = 100
"""Steps that are kept: a payload that runs longer gets longer ones."""
MB = 10**6


class Samples:
    """Memory is the most of each step, MB; processor time all up to its end, s."""

    def __init__(self) -> None:
        self.step_s = STEPS_S[0]
        self.memory_mb: list[int] = []
        self.cpu_s: list[int] = []

    def note(self, since_start_s: float, resident: int, cpu_s: float) -> None:
        """What all processes have now, resident bytes, and have used so far."""
        while since_start_s // self.step_s >= MOST:
            if self.step_s == STEPS_S[-1]:
                return
            self._coarser()
        place = int(since_start_s // self.step_s)
        while len(self.memory_mb) <= place:  # nobody looked in steps between: what was goes on
            self.memory_mb.append(self.memory_mb[-1] if len(self.memory_mb) < place and self.memory_mb else 0)
            self.cpu_s.append(self.cpu_s[-1] if self.cpu_s else 0)
        self.memory_mb[place] = max(self.memory_mb[place], round(resident / MB))
        self.cpu_s[place] = max(self.cpu_s[place], round(cpu_s))

    def as_report(self) -> dict[str, Any]:
        """As the server is told."""
        return {"step_s": self.step_s, "memory_mb": self.memory_mb, "cpu_s": self.cpu_s}

    def _coarser(self) -> None:
        longer = STEPS_S[STEPS_S.index(self.step_s) + 1]
        size = longer // self.step_s
        parts = [slice(i, i + size) for i in range(0, len(self.memory_mb), size)]
        self.memory_mb = [max(self.memory_mb[part]) for part in parts]
        self.cpu_s = [max(self.cpu_s[part]) for part in parts]
        self.step_s = longer
