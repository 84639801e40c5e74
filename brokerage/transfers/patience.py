"""Work on storage that may hang, each in a thread of its own, waited for only so long.

A thread that hangs cannot be ended: its storage is left out until it comes back, so that there is never more than one of each.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

T = TypeVar("T")


class TooSlow(Exception):
    """The storage did not answer in time."""


class StorageThreads(Generic[T]):
    """The threads of one kind of work, by the name of the storage."""

    def __init__(self) -> None:
        self._hanging: dict[str, threading.Thread] = {}

    def run(self, works: Mapping[str, Callable[[], T]], patience_s: float) -> dict[str, T | Exception]:
        """What each work gave or raised; TooSlow for one that takes longer than all together may, or still hangs from before."""
        results: dict[str, T | Exception] = {name: TooSlow(f"storage {name} does not answer") for name in works}
        self._hanging = {name: thread for name, thread in self._hanging.items() if thread.is_alive()}
        answers: dict[str, T | Exception] = {}
        threads = {
            name: threading.Thread(target=_answer, args=(name, work, answers), name=f"storage {name}", daemon=True)
            for name, work in works.items()
            if name not in self._hanging
        }
        for thread in threads.values():
            thread.start()
        end = time.monotonic() + patience_s
        for name, thread in threads.items():
            thread.join(max(0.0, end - time.monotonic()))
            if thread.is_alive():
                self._hanging[name] = thread
        return results | {name: answer for name, answer in list(answers.items()) if name not in self._hanging}


def _answer(name: str, work: Callable[[], T], answers: dict[str, T | Exception]) -> None:
    try:
        answers[name] = work()
    except OSError as error:
        answers[name] = error
