"""`manage.py import_grid FILE [--dry-run]`: sites, storage endpoints and queues from one grid document."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from broker_site.embedded.instance import ROOT
from broker_site.embedded.place import STATE
from brokerage.feeds.grid_document import load_grid
from brokerage.ledger.grid import Change, import_grid
from brokerage.rules.grid_document import BadGrid, Entry, Grid

SIGNS = {"added": "+", "changed": "~", "gone": "-"}


class Command(BaseCommand):
    """Brings the grid tables to what the document says; a bad document changes nothing."""

    help = "Import sites, storage endpoints and queues from a grid document; running it again changes nothing."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The file, and whether it is only tried."""
        parser.add_argument(
            "file", type=Path, metavar="FILE", help="JSON document; its schema is docs/reference/grid.schema.json"
        )
        parser.add_argument("--dry-run", action="store_true", help="only show what would change")
        parser.add_argument(
            "--storage-root", type=Path, metavar="DIR", help="where relative storage paths begin (default: the instance's folder)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Import; CommandError with a line `path: rule: message` for each fault."""
        file: Path = options["file"]
        root: Path = options["storage_root"] or ROOT / STATE / settings.ENV.instance
        try:
            grid = placed(load_grid(file), root.absolute())
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror or error}") from error
        except BadGrid as bad:
            lines = [f"{p.field or 'document'}: {p.rule}: {p.message}" for p in bad.problems]
            raise CommandError("\n".join([f"{file} is refused, nothing was changed:", *lines])) from bad
        changes = import_grid(grid, dry_run=options["dry_run"])
        if options["verbosity"] < 1:
            return
        for line in diff(changes) if options["dry_run"] or options["verbosity"] > 1 else ():
            self.stdout.write(line)
        for note in grid.notes:
            self.stdout.write(f"note: {note}")
        self.stdout.write(("would change: " if options["dry_run"] else "") + summary(grid, changes))


def placed(grid: Grid, root: Path) -> Grid:
    """The grid with relative storage paths put below `root`."""
    return replace(grid, storages=tuple(_placed(s, root) for s in grid.storages))


def _placed(storage: Entry, root: Path) -> Entry:
    path = storage.columns["path"]
    return Entry(storage.name, {**storage.columns, "path": str(root / path)}) if path else storage


def diff(changes: Sequence[Change]) -> Iterator[str]:
    """A line for each row, and one for each column that changes."""
    for change in changes:
        gone = " (no longer in the document)" if change.what == "gone" else ""
        yield f"{SIGNS[change.what]} {change.kind} {change.name}{gone}"
        for column, (before, after) in change.fields.items():
            yield f"    {column}: {before!r} -> {after!r}"


def summary(grid: Grid, changes: Sequence[Change]) -> str:
    """How many rows of each kind there are and what became of them."""
    counts = Counter((c.kind, c.what) for c in changes)
    parts = []
    for kind, plural, total in (
        ("site", "sites", len(grid.sites)),
        ("storage", "storage endpoints", len(grid.storages)),
        ("queue", "queues", len(grid.queues)),
    ):
        told = ", ".join(f"{counts[kind, what]} {what}" for what in SIGNS if counts[kind, what])  # type: ignore[index]
        parts.append(f"{total} {plural} ({told or 'unchanged'})")
    return "; ".join(parts)
