"""`manage.py storage`: mark roots and see how all are; run the server of an endpoint, and print the key that it needs."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from broker_site.foundation import gdpconfig
from brokerage.feeds.storage_roots import CannotMark, look_at_all, put_mark
from brokerage.ledger.storages import note_mark, use_next_key
from brokerage.models import StorageEndpoint
from brokerage.pilot.remote_root import RemoteRoot
from brokerage.pilot.storage_root import MARKER
from brokerage.queries.pilots import storage_roots
from brokerage.queries.signed_places import storage_key
from brokerage.rules.grid.storage_root import judge_root


class Command(BaseCommand):
    """Marks roots, so that one that goes away is seen to be away, and not to be empty; serves them over HTTP."""

    help = "Mark the root of a storage endpoint, list how the roots are, serve one over HTTP, or print the key of its server."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="mark|list|serve|key")
        mark = verbs.add_parser("mark", help="write a file with the endpoint's name into its root")
        mark.add_argument("name", metavar="NAME")
        mark.add_argument("--create", action="store_true", help="make the root if it is not there and was never marked")
        mark.add_argument("--canary", default="", metavar="FILE", help="a file below a read-only root that is always there")
        verbs.add_parser("list", help="look at every root now")
        serve = verbs.add_parser("serve", help="serve its directory to pilots and movers until Ctrl-C")
        serve.add_argument("name", metavar="NAME")
        serve.add_argument("--root", type=Path, metavar="DIR", help="its directory (default: the path in the grid)")
        serve.add_argument("--host", default="127.0.0.1", help="address to listen at (default %(default)s)")
        serve.add_argument("--port", type=int, default=8443, help="port (default %(default)s)")
        serve.add_argument("--key-file", type=Path, metavar="FILE", help="keys, one in each line (default: the key in use)")
        key = verbs.add_parser("key", help="print the key that addresses of the endpoint are signed with")
        key.add_argument("name", metavar="NAME")
        which = key.add_mutually_exclusive_group()
        which.add_argument("--next", action="store_true", help="print the next key, which is not used yet: add it at the server")
        which.add_argument("--new", action="store_true", help="use the next key from now on, and print it")

    def handle(self, *args: Any, **options: Any) -> None:
        """CommandError when a root cannot be marked."""
        match options["verb"]:
            case "mark":
                self._mark(_endpoint(options["name"]), create=options["create"], canary=options["canary"])
            case "serve":
                self._serve(_endpoint(options["name"]), options)
            case "key":
                self._key(_endpoint(options["name"]), upcoming=options["next"], new=options["new"])
            case _:
                self._list()

    def _mark(self, endpoint: StorageEndpoint, *, create: bool, canary: str) -> None:
        name = endpoint.name
        if not endpoint.path and endpoint.url:
            raise CommandError(f"the root of {name} is marked where its server runs: storage server option --write-mark")
        if not endpoint.path:
            raise CommandError(f"storage endpoint {name} has no path; give it one in the grid first")
        path = Path(endpoint.path)
        if create and not endpoint.mark:
            path.mkdir(parents=True, exist_ok=True)
        try:
            mark = put_mark(name, path, canary)
        except CannotMark as problem:
            hint = "" if path.exists() or endpoint.mark else "; --create makes it"
            raise CommandError(f"{problem}{hint}") from problem
        note_mark(name, mark)
        self.stdout.write(f"{name}: {path} is marked")

    def _serve(self, endpoint: StorageEndpoint, options: dict[str, Any]) -> None:
        """In place of this process."""
        root = options["root"] or Path(endpoint.path or "/")
        if not (options["root"] or endpoint.path):
            raise CommandError(f"storage endpoint {endpoint.name} has no path; say its directory with --root")
        mark = endpoint.mark or MARKER
        words = ["--name", endpoint.name, "--root", str(root), "--mark", mark, "--host", options["host"]]
        with tempfile.TemporaryDirectory() as folder:
            keys = options["key_file"]
            if keys is None:
                keys = Path(folder) / "keys"
                keys.touch(0o600)
                keys.write_text(storage_key(endpoint.name, endpoint.key_number) + "\n", encoding="ascii")
            code = subprocess.call(
                [
                    sys.executable,
                    "-m",
                    "brokerage.storage_server",
                    *words,
                    "--mark",
                    endpoint.mark or MARKER,
                    "--key-file",
                    str(keys),
                ]
            )
        if code > 0:
            raise CommandError(f"the server ended with exit code {code}")

    def _key(self, endpoint: StorageEndpoint, *, upcoming: bool, new: bool) -> None:
        number = use_next_key(endpoint.name) if new else endpoint.key_number + upcoming
        self.stdout.write(storage_key(endpoint.name, number))

    def _list(self) -> None:
        roots, full_below_gb = storage_roots(), gdpconfig.value("storage", "FULL_BELOW")
        looks = look_at_all(roots)
        for name, root in roots.items():
            verdict = judge_root(root.mark, looks[name], full_below_gb)
            where = root.url if isinstance(root, RemoteRoot) else str(root.path)
            self.stdout.write("  ".join(filter(None, (name, verdict.state, where, verdict.fault))))
        if not roots:
            self.stdout.write("no storage endpoint has a path or an address")


def _endpoint(name: str) -> StorageEndpoint:
    endpoint = StorageEndpoint.objects.filter(name=name).first()
    if endpoint is None:
        raise CommandError(f"there is no storage endpoint {name}")
    return endpoint
