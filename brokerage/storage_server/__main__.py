"""`python -m brokerage.storage_server`: arguments, a look at root and keys, and granian."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from granian import Granian
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels

from brokerage.pilot.storage_root import CANARY, MARKER, StorageRoot
from brokerage.storage_server.served import CONFIGURATION, NoKeys, Served

CONNECTIONS = 1000
END_S = 10


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m brokerage.storage_server",
        description="Serve the files of one storage endpoint to those whom the broker lets.",
    )
    parser.add_argument("--name", required=True, help="name of the storage endpoint")
    parser.add_argument("--root", required=True, type=Path, metavar="DIR", help="its directory")
    parser.add_argument(
        "--mark",
        default=MARKER,
        help=f"how the root is marked: {MARKER} (default: a file of this name in it holds the name of the endpoint), "
        f"or {CANARY}<bytes>:<path below it>",
    )
    parser.add_argument("--write-mark", action="store_true", help="mark the root, which must be there, before anything else")
    parser.add_argument(
        "--key-file",
        required=True,
        type=Path,
        metavar="FILE",
        help="keys of the endpoint, one in each line (manage.py storage key)",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default %(default)s)")
    parser.add_argument("--port", type=int, default=8443, help="port (default %(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="processes (default %(default)s)")
    parser.add_argument("--tls-certificate", type=Path, metavar="FILE", help="serve https with this certificate")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="key of the certificate")
    return parser


def write_mark(root: StorageRoot) -> None:
    """Mark a root; one that has the mark of another endpoint stays as it is. OSError."""
    marker = root.path / MARKER
    if not marker.exists():
        marker.write_text(f"{root.name}\n", encoding="utf-8")


def main(words: Sequence[str] | None = None) -> int:
    """Serve until told to end; exit code 2: it cannot begin."""
    options = arguments().parse_args(words)
    served = Served(StorageRoot(options.name, options.root.resolve(), options.mark), options.key_file.resolve())
    try:
        if options.write_mark:
            write_mark(served.root)
        served.keys()
    except (OSError, NoKeys) as problem:
        print(f"cannot begin: {problem}", file=sys.stderr)
        return 2
    if fault := served.root.fault():
        print(f"{fault}; requests are answered with 503 until it is there", file=sys.stderr)
    os.umask(0o027)
    os.environ[CONFIGURATION] = served.as_text()
    Granian(
        "brokerage.storage_server.application:application",
        address=options.host,
        port=options.port,
        interface=Interfaces.RSGI,
        workers=options.workers,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=10_000),
        websockets=False,
        backpressure=CONNECTIONS,
        respawn_failed_workers=True,
        workers_kill_timeout=END_S,
        log_level=LogLevels.warning,
        factory=True,
        ssl_cert=options.tls_certificate,
        ssl_key=options.tls_key,
    ).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
