"""`manage.py storage mark NAME`: say that the root of a storage endpoint is the right one; `list` shows how all are."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from broker_site.foundation import gdpconfig
from brokerage.feeds.storage_roots import CannotMark, look_at, put_mark
from brokerage.ledger.storages import note_mark
from brokerage.models import StorageEndpoint
from brokerage.queries.pilots import storage_roots
from brokerage.rules.grid.storage_root import judge_root


class Command(BaseCommand):
    """Marks roots, so that one that goes away is seen to be away, and not to be empty."""

    help = "Mark the root of a storage endpoint, or list how the roots are."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, metavar="mark|list")
        mark = verbs.add_parser("mark", help="write a file with the endpoint's name into its root")
        mark.add_argument("name", metavar="NAME")
        mark.add_argument("--create", action="store_true", help="make the root if it is not there and was never marked")
        mark.add_argument("--canary", default="", metavar="FILE", help="a file below a read-only root that is always there")
        verbs.add_parser("list", help="look at every root now")

    def handle(self, *args: Any, **options: Any) -> None:
        """CommandError when a root cannot be marked."""
        if options["verb"] == "mark":
            self._mark(options["name"], create=options["create"], canary=options["canary"])
        else:
            self._list()

    def _mark(self, name: str, *, create: bool, canary: str) -> None:
        endpoint = StorageEndpoint.objects.filter(name=name).first()
        if endpoint is None:
            raise CommandError(f"there is no storage endpoint {name}")
        if not endpoint.path:
            raise CommandError(f"storage endpoint {name} has no path; give it one in the grid first")
        path = Path(endpoint.path)
        if create and not endpoint.mark:
            path.mkdir(parents=True, exist_ok=True)
        try:
            mark = put_mark(name, path, canary)
        except CannotMark as problem:
            raise CommandError(str(problem)) from problem
        note_mark(name, mark)
        self.stdout.write(f"{name}: {path} is marked")

    def _list(self) -> None:
        roots, full_below_gb = storage_roots(), gdpconfig.value("storage", "FULL_BELOW")
        for name, root in roots.items():
            verdict = judge_root(root.mark, look_at(root), full_below_gb)
            self.stdout.write("  ".join(filter(None, (name, verdict.state, str(root.path), verdict.fault))))
        if not roots:
            self.stdout.write("no storage endpoint has a path")
