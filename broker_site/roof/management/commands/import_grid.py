"""`manage.py import_grid FILE... [--dry-run]`: the grid from our own grid document, or from CRIC's documents."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from broker_site.foundation import gdpconfig
from broker_site.foundation.kernel import clock
from broker_site.roof.embedded.instance import ROOT
from broker_site.roof.embedded.place import STATE
from brokerage.feeds.document import from_afar, parse, read_bytes, wanted_of
from brokerage.feeds.fetch import FeedUnavailable, fetch
from brokerage.feeds.refresh import limits
from brokerage.ledger.grid import import_grid
from brokerage.ledger.grid_facts import Change
from brokerage.queries.feeds import known_names
from brokerage.rules.grid.cric import KINDS
from brokerage.rules.grid.document import BadGrid, UnknownAttribute, unknown_attributes
from brokerage.rules.grid.update import GridUpdate

SIGNS = {"added": "+", "changed": "~", "gone": "-"}
PLURALS = {
    "site": ("sites", "sites"),
    "storage": ("storage endpoints", "storages"),
    "queue": ("queues", "queues"),
    "link": ("links", "links"),
    "slots": ("declared slots", "slots"),
    "measured": ("measured queues", "measured"),
    "software": ("software documents", "software"),
}
"""Kind of a row -> what several are called, and the part of the document."""
MOST_NAMED = 20
"""Attributes that are not known which the last line names."""
CRIC = "cric"
"""Whose the rows of CRIC's documents are, unless a feed is named."""


class Command(BaseCommand):
    help = "Import the grid from a grid document, or from CRIC's documents; running it again changes nothing."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "files",
            nargs="+",
            metavar="FILE",
            help="a grid document (its schema is docs/reference/grid.schema.json), or CRIC's sites, storage endpoints, queues, "
            "releases, network metrics, closeness; also http(s) addresses on hosts listed in FEED_HOSTS; several are imported "
            "together, in this order",
        )
        parser.add_argument("--dry-run", action="store_true", help="only show what would change")
        parser.add_argument(
            "--feed", default="", metavar="NAME", help=f"whose rows they are: what NAME said before and does not now is gone"
            f" (default: the document's own; {CRIC} for CRIC's)"
        )  # fmt: skip
        parser.add_argument(
            "--storage-root", type=Path, metavar="DIR", help="where relative storage paths begin (default: the instance's folder)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Import; CommandError with a line `path: rule: message` for each fault."""
        root: Path = options["storage_root"] or ROOT / STATE / settings.ENV.instance
        read = [(file, *self._parsed(file)) for file in options["files"]]
        with transaction.atomic():
            for file, kind, document in sorted(read, key=lambda entry: list(KINDS).index(entry[1])):
                try:
                    wanted = wanted_of(kind, document, known_names(), clock.now())
                    wanted = from_afar(wanted) if "://" in file else placed(wanted, root.absolute())
                    changes = self._imported(kind, wanted, options["feed"])
                except BadGrid as bad:
                    raise refused(file, bad) from bad
                self._tell(wanted, changes, options["dry_run"], options["verbosity"])
                if kind == "grid" and options["verbosity"] and (unknown := unknown_attributes(document)):
                    self.stderr.write(not_known(unknown))  # beside what changed, which others may read
            if options["dry_run"]:
                transaction.set_rollback(True)

    def _parsed(self, file: str) -> tuple[str, Any]:
        try:
            return parse(fetch(file, limits()).body if "://" in file else read_bytes(Path(file)))
        except FeedUnavailable as down:
            raise CommandError(f"{file}: {down}") from down
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror or error}") from error
        except BadGrid as bad:
            raise refused(file, bad) from bad

    def _imported(self, kind: str, wanted: GridUpdate, feed: str) -> list[Change]:
        if kind == "grid":
            return import_grid(wanted, source=feed)
        return import_grid(wanted, source=feed or CRIC, max_loss=gdpconfig.value("feeds", "FEED_MAX_LOSS"))

    def _tell(self, wanted: GridUpdate, changes: Sequence[Change], dry_run: bool, verbosity: int) -> None:
        if verbosity < 1:
            return
        for line in diff(changes) if dry_run or verbosity > 1 else ():
            self.stdout.write(line)
        for note in wanted.notes:
            self.stdout.write(f"note: {note}")
        for faults in wanted.faulty.values():
            for fault in faults.values():
                self.stdout.write(f"faulty, its last good version stays: {fault}")
        self.stdout.write(("would change: " if dry_run else "") + summary(wanted, changes))


def not_known(unknown: Sequence[UnknownAttribute]) -> str:
    """What the document says that nothing goes by: how many attributes, and which."""
    named = []
    for part, name, entries, near in unknown[:MOST_NAMED]:
        noun = part if entries > 1 else part.removesuffix("s")
        named.append(f"{name} of {entries} {noun}" + (f" (the nearest known one is {near})" if near else ""))
    more = [f"{len(unknown) - MOST_NAMED} more"] if len(unknown) > MOST_NAMED else []
    many = f"{len(unknown)} attributes are" if len(unknown) > 1 else "1 attribute is"
    return f"{many} not known; kept as they came, nothing goes by them: {', '.join([*named, *more])}"


def refused(file: str, bad: BadGrid) -> CommandError:
    """The refusal of a whole document, a line for each fault."""
    lines = [f"{p.field or 'document'}: {p.rule}: {p.message}" for p in bad.problems]
    return CommandError("\n".join([f"{file} is refused, nothing was changed:", *lines]))


def placed(wanted: GridUpdate, root: Path) -> GridUpdate:
    """The grid with relative storage paths put below `root`."""
    if wanted.storages is None:
        return wanted
    storages = [
        replace(storage, columns={**storage.columns, "path": str(root / path)})
        if (path := storage.columns.get("path"))
        else storage
        for storage in wanted.storages
    ]
    return replace(wanted, storages=tuple(storages))


def diff(changes: Sequence[Change]) -> Iterator[str]:
    """A line for each row, and one for each column that changes."""
    for change in changes:
        gone = " (no longer in the document)" if change.what == "gone" else ""
        yield f"{SIGNS[change.what]} {change.kind} {change.name}{gone}"
        for column, (before, after) in change.fields.items():
            yield f"    {column}: {before!r} -> {after!r}"


def summary(wanted: GridUpdate, changes: Sequence[Change]) -> str:
    """How many rows of each kind there are and what became of them."""
    counts = Counter((c.kind, c.what) for c in changes)
    parts = []
    for kind, (plural, part) in PLURALS.items():
        if (rows := getattr(wanted, part)) is not None:
            counted = ", ".join(f"{counts[kind, what]} {what}" for what in SIGNS if counts[kind, what])  # type: ignore[index]
            noun = plural.removesuffix("s") if len(rows) == 1 else plural
            parts.append(f"{len(rows)} {noun} ({counted or 'unchanged'})")
    return "; ".join(parts)
