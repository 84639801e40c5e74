"""`manage.py export_grid [FILE]`: the grid of this moment as a grid document, which `decide` and `import_grid` read."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from brokerage.queries.world import load_snapshot
from brokerage.rules.world.stored_snapshot import document, for_everybody


class Command(BaseCommand):
    help = "Write the grid as decisions see it at this moment, as a grid document: for `decide`, `import_grid`, a colleague."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="default: standard output")
        parser.add_argument(
            "--grid-only",
            action="store_true",
            help="without jobs, users and remaining work, which name people, and without paths; as REST gives it",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Write it; CommandError where the file cannot be written."""
        snapshot = for_everybody(load_snapshot()) if options["grid_only"] else load_snapshot()
        text = json.dumps(document(snapshot), indent=1, ensure_ascii=False)
        file: Path | None = options["file"]
        if file is None:
            self.stdout.write(text)
            return
        try:
            file.write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror or error}") from error
        grid = snapshot.grid
        counts = f"{len(grid.sites)} sites, {len(grid.storages)} storage endpoints, {len(grid.queues)} queues"
        self.stdout.write(f"{file}: {counts}, as of {snapshot.now:%Y-%m-%d %H:%M:%S} UTC")
