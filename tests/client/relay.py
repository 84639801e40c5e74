"""A wire that breaks: what goes through it reaches the real server, what comes back may not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def breaking(port: int, lost: int) -> Iterator[str]:
    """The URL of a relay to this port that swallows the first answers, so many, and cuts their connections."""
    listener = socket.create_server(("127.0.0.1", 0))
    left = [lost]

    def serve() -> None:
        with suppress(OSError):
            while True:
                caller, _ = listener.accept()
                threading.Thread(target=through, args=(caller,), daemon=True).start()

    def through(caller: socket.socket) -> None:
        with caller, socket.create_connection(("127.0.0.1", port)) as server:
            threading.Thread(target=pass_on, args=(caller, server), daemon=True).start()
            answer = server.recv(1 << 16)
            if left[0]:
                left[0] -= 1
                caller.shutdown(socket.SHUT_RDWR)  # closing alone would wait for whoever reads
                return
            with suppress(OSError):
                while answer:
                    caller.sendall(answer)
                    answer = server.recv(1 << 16)

    def pass_on(caller: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while piece := caller.recv(1 << 16):
                server.sendall(piece)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)
