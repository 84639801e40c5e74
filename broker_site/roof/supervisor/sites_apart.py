"""Sites apart: a local system in which no site sees the directory of another, and no pilot any: each endpoint has a server.

The grid says addresses instead of paths; the servers are children of the supervisor, on ports that they keep from run to run.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.core.management import call_command

from broker_site.roof.embedded.instance import ROOT
from broker_site.roof.embedded.place import CLOSED, read_private, write_private
from broker_site.roof.embedded.process import free_port
from broker_site.roof.supervisor.child import Spec
from broker_site.roof.supervisor.local_site import GRID
from broker_site.roof.supervisor.system import SECRET, NotRunning
from broker_site.roof.supervisor.watch import Supervisor
from brokerage.feeds.storage_roots import put_mark
from brokerage.models import StorageEndpoint
from brokerage.pilot.remote_root import RemoteRoot
from brokerage.queries.pilots import storage_roots
from brokerage.queries.signed_places import storage_key

PORTS = "sites_apart.json"
"""The port of each endpoint's server, in the folder of an instance whose sites are apart."""
READY_S = 30.0


def are_apart(folder: Path) -> bool:
    """Whether the sites of this instance were set apart, and were not put together again."""
    return (folder / PORTS).exists()


def put_together(folder: Path) -> None:
    """No servers any more; the next import of the grid says paths again."""
    (folder / PORTS).unlink(missing_ok=True)


def set_apart(folder: Path, supervisor: Supervisor, environment: Mapping[str, str], grid: Path = GRID) -> None:
    """Import the grid with addresses in place of the paths below the instance's folder, and start the servers of these endpoints.

    `environment`: that of the children; the servers get what is no secret of it. Roots that nobody has made yet are made and
    marked. NotRunning: a server does not come up.
    """
    known = {name: str(port) for name, port in read_private(folder / PORTS).items()}
    document = json.loads(grid.read_text(encoding="utf-8"))
    roots = {name: path for name, entry in document["storages"].items() if (path := _root(folder, entry)) is not None}
    ports = {name: free_port(int(known[name]) if name in known else None) for name in sorted(roots)}
    _import(_with_addresses(document, ports))
    write_private(folder / PORTS, json.dumps(ports))
    for name, path in roots.items():
        if not path.exists():
            path.mkdir(CLOSED, parents=True)
            put_mark(name, path)
        supervisor.add(_server(folder, environment, name, path, ports[name]))
    for name, port in ports.items():
        _wait(name, port)


def _root(folder: Path, entry: Mapping[str, Any]) -> Path | None:
    path = folder / entry["path"] if entry.get("path") else None
    return path if path is not None and path.is_relative_to(folder) else None


def _with_addresses(document: dict[str, Any], ports: Mapping[str, int]) -> dict[str, Any]:
    for name, port in ports.items():
        document["storages"][name] |= {"path": "", "url": f"http://127.0.0.1:{port}"}
    return document


def _import(document: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "grid.json"
        file.write_text(json.dumps(document), encoding="utf-8")
        call_command("import_grid", str(file), verbosity=0)


def _server(folder: Path, environment: Mapping[str, str], name: str, root: Path, port: int) -> Spec:
    """The server of an endpoint: it gets the key of this endpoint, and no secret of the broker's."""
    part = quote(name, safe="")
    keys = folder / "storage_keys"
    keys.mkdir(CLOSED, exist_ok=True)
    number = StorageEndpoint.objects.values_list("key_number", flat=True).get(name=name)
    write_private(keys / part, storage_key(name, number) + "\n")
    clean = {variable: value for variable, value in environment.items() if variable not in SECRET}
    command = (
        *(sys.executable, "-m", "brokerage.storage_server", "--name", name, "--root", str(root)),
        *("--key-file", str(keys / part), "--port", str(port)),
    )
    return Spec(f"storage-{part}", command, clean, ROOT)


def _wait(name: str, port: int) -> None:
    until = time.monotonic() + READY_S
    while time.monotonic() < until:
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2):
            return
        time.sleep(0.05)
    raise NotRunning(f"the storage server of {name} did not answer on port {port}")


@contextmanager
def mirrored(prefix: str) -> Iterator[dict[str, Path]]:
    """A folder for each endpoint with a server, with the files there whose names begin so, as its server gives them."""
    with tempfile.TemporaryDirectory() as folder:
        mirrors = {}
        for name, root in storage_roots().items():
            if isinstance(root, RemoteRoot):
                mirrors[name] = Path(folder) / quote(name, safe="")
                _mirror(root, prefix, mirrors[name])
        yield mirrors


def _mirror(root: RemoteRoot, prefix: str, folder: Path) -> None:
    folder.mkdir()
    for path, _, _ in list(root.files()):
        if Path(path).name.removeprefix(".").startswith(prefix):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):  # it was taken away since
                root.download(path, folder / path)
