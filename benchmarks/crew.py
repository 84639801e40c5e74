"""Client processes: each makes its own client, then all do their share of a leg at the same time."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from types import TracebackType
from typing import Any, Self

from benchmarks.harness import Lap

START_S = 60.0


class ClientFailed(Exception):
    """A client process ended or hung; what it printed says why."""


class Crew:
    """`size` processes, each with `make(number, *arguments)`, whose methods are called by name. Use as a context."""

    def __init__(self, size: int, make: Callable[..., Any], *arguments: object) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["benchmarks.client"])
        self.size = size
        self._barrier = context.Barrier(size)
        self._pipes: list[Connection] = []
        self._processes = []
        for number in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, self._barrier, make, number, arguments), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)
        for pipe in self._pipes:
            _answer(pipe, START_S)

    def __enter__(self) -> Self:
        """The crew, ready."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End every process."""
        for pipe in self._pipes:
            try:
                pipe.send(None)
            except OSError:
                continue  # it has ended by itself
        for process in self._processes:
            process.join(5)
            if process.is_alive():
                process.kill()

    def do(self, method: str, n: int) -> Lap:
        """Let each process do its part of `n` operations at once; from the first start to the last end."""
        share = max(1, n // self.size)
        for pipe in self._pipes:
            pipe.send((method, share, True))
        done = [_answer(pipe, 600.0) for pipe in self._pipes]
        seconds = max(d[1] for d in done) - min(d[0] for d in done)
        return Lap(share * self.size, seconds, sum(d[2] for d in done))

    def tell(self, method: str, value: object) -> list[Any]:
        """Call a method of every client, one after the other, not timed: what each gave."""
        answers = []
        for pipe in self._pipes:
            pipe.send((method, value, False))
            answers.append(_answer(pipe, START_S)[3])
        return answers


def _answer(pipe: Connection, seconds: float) -> Any:
    if not pipe.poll(seconds):
        raise ClientFailed(f"a client process said nothing for {seconds:.0f} s")
    try:
        return pipe.recv()
    except EOFError:
        raise ClientFailed("a client process ended; its error is above") from None


def _work(pipe: Connection, barrier: Barrier, make: Callable[..., Any], number: int, arguments: tuple[object, ...]) -> None:
    """The life of a client process: wait for an order, start together with the others, tell the times."""
    import benchmarks.client  # noqa: F401 - where it could not be loaded before, this says why

    client = make(number, *arguments)
    pipe.send(())
    while (order := _order(pipe)) is not None:
        method, value, together = order
        if together:
            barrier.wait(START_S)
        cpu, began = time.process_time(), time.monotonic()
        gave = getattr(client, method)(value)
        pipe.send((began, time.monotonic(), time.process_time() - cpu, gave))


def _order(pipe: Connection) -> tuple[str, object, bool] | None:
    """Method, value, and whether all begin together; None at the end."""
    try:
        order: tuple[str, object, bool] | None = pipe.recv()
    except EOFError:
        return None  # the parent is gone
    return order
