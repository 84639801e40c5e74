"""`manage.py config export|import`: overrides, shares and work queues as a file that can be kept in a repository."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from broker_site.foundation.gdpconfig.changesets import CONFIG, Draft
from broker_site.foundation.gdpconfig.effects import Effects, effects_of
from broker_site.foundation.gdpconfig.exchange import LARGEST, Read, exported, read_document
from broker_site.foundation.gdpconfig.keys import BadConfig
from broker_site.foundation.gdpconfig.store import apply, preview
from broker_site.foundation.kernel import clock
from brokerage.queries.config_replay import replayed
from brokerage.queries.steering_trial import steering_trial
from brokerage.queries.what_if import reading_only


class Command(BaseCommand):
    help = "Write overrides, shares and work queues to a JSON or YAML file, or set them as a file says: all lines or none."

    def add_arguments(self, parser: CommandParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True, metavar="export|import")
        writing = acts.add_parser("export", help="write every override, share and work queue to the standard output")
        writing.add_argument("--format", choices=("json", "yaml"), default="json", help="yaml: a member a line (default: json)")
        reading = acts.add_parser("import", help="set what a file says in one change set")
        reading.add_argument("file", help="the file, JSON or YAML; - for the standard input")
        reading.add_argument("--dry-run", action="store_true", help="only say what would change, and what it would have done")
        reading.add_argument("--only", action="store_true", help="remove what the lists of the file do not name")
        reading.add_argument("--reason", default="", help="kept in the history; needed unless it is a dry run")
        reading.add_argument("--ticket", default="", help="kept in the history too")
        reading.add_argument("--base", type=int, help="the revision that you looked at; what was changed since is refused")
        reading.add_argument("--who", default="", help="the author in the history (default: who you are on this machine)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Export or import."""
        if options["act"] == "export":
            self.stdout.write(exported(options["format"]), ending="")
            return
        try:
            read = read_document(_text(options["file"]), only=options["only"])
        except BadConfig as bad:
            raise _refused(bad) from None
        try:
            self._import(read, options)
        except BadConfig as bad:
            raise _refused(read.located(bad)) from None

    def _import(self, read: Read, options: dict[str, Any]) -> None:
        who = options["who"] or getpass.getuser()
        draft = Draft(read.lines, who, options["reason"], "import", ticket=options["ticket"], base=options["base"])
        with reading_only():
            steps = preview(draft)
            effects = effects_of(steps)
            trial = steering_trial(steps, clock.now()) if options["dry_run"] else None
            replay = replayed(effects.before, effects.after) if options["dry_run"] and effects.of_keys else None
        self._tell(effects)
        if replay is not None:
            self.stdout.write(replay.sentence)
        if trial is not None:
            self.stdout.write(trial.sentence)
        if options["dry_run"]:
            return
        made = apply(draft)
        self.stdout.write(f"Applied as revision {made.revision}." if made else "Nothing to change: all of it holds already.")

    def _tell(self, effects: Effects) -> None:
        for line in effects.lines:
            if line.differs:
                before, after = ("none" if text is None else repr(text) for text in (line.before, line.after))
                until = f" until {line.until:%Y-%m-%d %H:%M} UTC" if line.until else ""
                said = f"{before} -> {after}" if line.place.kind == CONFIG else line.words
                self.stdout.write(f"{line.place}: {said}{until}")


def _refused(bad: BadConfig) -> CommandError:
    lines = "\n".join(f"{problem.field}: {problem.message} ({problem.rule})" for problem in bad.problems)
    return CommandError(f"Nothing was changed:\n{lines}")


def _text(name: str) -> str:
    """What the file says. CommandError where it cannot be read."""
    try:
        if name == "-":
            return sys.stdin.read(LARGEST + 1)
        with Path(name).open(encoding="utf-8") as file:
            return file.read(LARGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name} cannot be read: {error}") from None
