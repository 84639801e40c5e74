"""What feeding a task's master inputs comes to: which files it uses, and whether it can go on.

Source: facts on datasets 1.1.3, 1.2.4; facts on workflows 7.2.9; seed 001, nFiles and nEvents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Fed = Literal["go", "wait", "finish", "break"]


def used_part(events: Sequence[int | None], n_files: int | None, n_events: int | None) -> int | None:
    """How many files from the first on a task uses that asked for `n_files` files and `n_events` events (None: all of them).

    `events`: events of each file in order, None where unknown. The file in which the last wanted event lies is used. None: the
    task asked for events and a file that would be needed has no known number.
    """
    most = len(events) if n_files is None else min(len(events), n_files)
    if n_events is None:
        return most
    total = 0
    for i in range(most):
        if total >= n_events:
            return i
        of_file = events[i]
        if of_file is None:
            return None
        total += of_file
    return most


def after_feeding(usable: int, *, allow_empty: bool, wait_input: bool = False, still_open: bool = False) -> Fed:
    """Where a task goes whose masters have `usable` files together: on, pending, to its end at once, or tobroken.

    `still_open`: files may still come (a dataset is open, or its parent runs).
    """
    if usable:
        return "go"
    if wait_input and still_open:
        return "wait"
    return "finish" if allow_empty else "break"
