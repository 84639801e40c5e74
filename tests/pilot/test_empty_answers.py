"""A storage server that sends heads of answers and no file is given up like one that is silent."""

from __future__ import annotations

import socketserver
import threading
import time
from pathlib import Path

import pytest

from brokerage.pilot import remote_storage
from brokerage.pilot.storage_root import StorageDown


class HeadsOnly(socketserver.StreamRequestHandler):
    """Says that a file comes, and ends the connection."""

    def handle(self) -> None:
        while self.rfile.readline().strip():
            pass
        self.wfile.write(b'HTTP/1.1 200 OK\r\nETag: "1"\r\nContent-Length: 1000\r\n\r\n')


def test_a_server_that_sends_heads_and_no_file_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_storage, "PATIENCE_S", 1.0)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), HeadsOnly) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        began = time.monotonic()
        with pytest.raises(StorageDown):
            remote_storage.download("DISK", f"http://127.0.0.1:{server.server_address[1]}/file?x=1", tmp_path / "file")
        assert time.monotonic() - began < 20
        server.shutdown()
