"""A storage server that never falls silent and never comes to an end: it sends its answers byte by byte."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

MOST_BYTES = 200
"""So a reader that waits for the end is found out, and does not hang."""


@contextlib.contextmanager
def dripping(begin: bytes) -> Iterator[str]:
    """Its address. What it answers begins with these bytes; then come single ones."""
    stop = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while connection.recv(65536):
                connection.sendall(begin)
                for _ in range(MOST_BYTES):
                    if stop.wait(0.05):
                        return
                    connection.sendall(b"x")

    def accept(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            stop.set()
            listener.shutdown(socket.SHUT_RDWR)
