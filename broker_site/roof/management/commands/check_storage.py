"""`manage.py check_storage`: holds the catalogue against the storage endpoints; exit 1 if they differ."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from broker_site.foundation.gdpconfig.texts import KINDS, InvalidText
from brokerage.feeds.storage_contents import check_contents, remove
from brokerage.pilot.remote_root import RemoteRoot
from brokerage.pilot.storage_root import StorageRoot
from brokerage.queries.pilots import storage_roots
from brokerage.rules.grid.storage_contents import StorageFindings

SHOWN = 20
"""Files of a kind that are named in the text."""


class Command(BaseCommand):
    """Looks at every endpoint with a path or an address; may run beside a working system. Removes only what is asked for."""

    help = "Find files that are registered and not on storage, of another size, or on storage and not registered."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--storage", action="append", metavar="NAME", help="only this endpoint; may be said again")
        parser.add_argument(
            "--older-than", type=_duration, default=86400.0, metavar="TIME",
            help="unknown files of this age, as 12h or in seconds, are orphans (default 1d); younger ones may be of a job that "
            "is about to report",
        )  # fmt: skip
        parser.add_argument("--remove-orphans", action="store_true", help="remove the orphans; nothing else is ever removed")
        parser.add_argument("--json", action="store_true", help="one JSON document instead of text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Exits with 1 if anything is wrong, or an endpoint is down."""
        roots = storage_roots()
        names = options["storage"] or list(roots)
        if unknown := [name for name in names if name not in roots]:
            raise CommandError(f"no storage endpoint with a path or an address: {', '.join(unknown)}")
        results = [self._look(roots[name], options["older_than"], removing=options["remove_orphans"]) for name in names]
        if options["json"]:
            self.stdout.write(json.dumps({"storages": results}, indent=1))
        else:
            for result in results:
                self._show(result)
        if any(result["trouble"] or result["problems"] for result in results):
            sys.exit(1)

    def _look(self, root: StorageRoot | RemoteRoot, older_than_s: float, *, removing: bool) -> dict[str, Any]:
        """One endpoint. Orphans that were removed are no problem any more."""
        removed, trouble, findings = 0, "", StorageFindings()
        try:
            findings = check_contents(root, older_than_s)
            removed = remove(root, findings.dark) if removing else 0
        except OSError as problem:
            trouble = problem.strerror or str(problem)
        return {
            "storage": root.name,
            "marked": bool(root.mark),
            "trouble": trouble,
            "right": findings.right,
            "orphans": [file.path for file in findings.dark],
            "orphan_bytes": findings.bytes_of_dark,
            "young": [file.path for file in findings.young],
            "lost": list(findings.absent),
            "wrong_sizes": [
                {"path": path, "found": found, "registered": registered} for path, found, registered in findings.wrong_sizes
            ],
            "removed": removed,
            "problems": findings.problems - removed,
        }

    def _show(self, result: dict[str, Any]) -> None:
        if result["trouble"]:
            self.stdout.write(f"{result['storage']}: not looked at: {result['trouble']}")
            return
        lost, wrong, orphans = result["lost"], result["wrong_sizes"], result["orphans"]
        noun = "orphan" if len(orphans) == 1 else "orphans"
        counts = f"{result['right']} right, {len(lost)} lost, {len(wrong)} of a wrong size, {len(orphans)} {noun}"
        young = f", {len(result['young'])} unknown but young" if result["young"] else ""
        removed = f", {result['removed']} removed" if result["removed"] else ""
        unmarked = "" if result["marked"] else " (never marked: it may be the wrong folder)"
        self.stdout.write(f"{result['storage']}{unmarked}: {counts}{young}{removed}")
        sizes = [f"{entry['path']}: {entry['found']} bytes, registered are {entry['registered']}" for entry in wrong]
        for kind, lines in (("lost", lost), ("wrong size", sizes), ("orphan", orphans)):
            for line in lines[:SHOWN]:
                self.stdout.write(f"    {kind}: {line}")
            if len(lines) > SHOWN:
                self.stdout.write(f"    {kind}: {len(lines) - SHOWN} more")


def _duration(text: str) -> float:
    try:
        return float(KINDS["duration"].read(f"{text}s" if text.isdecimal() else text))
    except InvalidText as problem:
        raise ArgumentTypeError(str(problem)) from problem
