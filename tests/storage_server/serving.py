"""A storage server as a real process, with the keys and addresses that the broker would make for it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

from broker_site.roof.embedded.process import free_port
from brokerage.pilot.signed_urls import MOST_BYTES, Grant, signed_url
from brokerage.pilot.storage_root import MARKER

ROOT = Path(__file__).resolve().parents[2]
KEY, OTHER_KEY = "k" * 64, "o" * 64


class Serving:
    """A server of a marked root below `folder`."""

    def __init__(self, folder: Path, name: str = "DISK", *, root: Path | None = None, key: str = KEY, mark: str = MARKER) -> None:
        self.folder, self.name, self.key, self.mark = folder, name, key, mark
        self.root, self.key_file = root or folder / f"root_{name}", folder / f"keys_{name}"
        self.root.mkdir(exist_ok=True)
        (self.root / MARKER).write_text(f"{name}\n")
        self.key_file.write_text(f"{key}\n")
        self.port = free_port(None)
        self.base = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [sys.executable, "-m", "brokerage.storage_server", "--name", self.name, "--root", str(self.root)]
        options = ["--key-file", str(self.key_file), "--port", str(self.port), "--mark", self.mark]
        with (self.folder / f"server_{self.name}.err").open("ab") as errors:
            self.process = subprocess.Popen([*command, *options], cwd=ROOT, stderr=errors, stdout=errors, start_new_session=True)
        until = time.monotonic() + 20
        while True:
            with suppress(OSError), urllib.request.urlopen(f"{self.base}/healthz", timeout=1):  # noqa: S310 - our own http URL
                return
            assert time.monotonic() < until, (self.folder / f"server_{self.name}.err").read_text()
            time.sleep(0.02)

    def stop(self) -> None:
        """End it with all its processes; after this nobody listens."""
        if self.process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, 9)
        self.process.wait()
        self.process = None
        with suppress(ConnectionError):
            while True:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                time.sleep(0.01)

    def url(self, method: str, name: str, *, job: int = 0, epoch: int = 0, size: int = MOST_BYTES, life_s: float = 60) -> str:
        """An address that this storage allows."""
        return signed_url(self.base, self.key, Grant(method, name, int(time.time() + life_s), job, epoch, size))

    def files(self) -> list[str]:
        """Every file below the root but its mark."""
        return sorted(
            path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file() and path.name != MARKER
        )
