"""From a draft to a change set: what it would lead to is told, then it is asked, then it is applied."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from broker_site.client.command.grammar import JSON, YES, option
from broker_site.client.command.session import Session
from broker_site.client.drafts import LISTS, Entry, Line, checked, differences, is_json, lines_between, place, read
from broker_site.client.errors import OK, USAGE, Fault, Refused, Unusable

Row = Mapping[str, Any]
TWO = "two_person"
"""Rule of a key that takes two people."""
EDITORS = "VISUAL or EDITOR names an editor"
REASON = option("-m", "--reason", default="", metavar="TEXT", help="why, for the history; needed unless it is a dry run")
TICKET = option("--ticket", default="", metavar="TEXT", help="a ticket, for the history")
BASE = option("--base", type=int, metavar="N", help="the revision that the draft rests on: what was changed since is refused")
DRY = option("--dry-run", action="store_true", help="only tell what would change, and what it would have done of late")
PROPOSE = option("--propose", action="store_true", help="keep it for somebody else to approve, as some keys want it")
ONLY = option("--only", action="store_true", help="remove what the lists of the draft do not name")
OF_VO = option("--vo", default="", metavar="VO", help="with --only: remove only what is for this VO")
FILE = option("file", metavar="FILE", help="the draft, JSON or YAML, as export writes it; - for standard input")
APPLY = (REASON, TICKET, DRY, PROPOSE, YES, JSON)


def proceed(session: Session, lines: Sequence[Line], base: int | None) -> int:
    """Tell what the lines would lead to; unless that is all, apply them once somebody agrees."""
    options = session.options
    if not lines:
        session.tell("nothing to change: all of it holds already")
        return OK
    if not options.dry_run:
        reasoned(session)
    trial = _by_place(lines, lambda: session.client.config.dry_run(lines, base))
    told(session, trial)
    if options.dry_run:
        return OK
    if not any(line["differs"] for line in trial["lines"]):
        session.tell("nothing to change: all of it holds already")
        return OK
    if not session.agreed("propose this?" if options.propose else "apply this?"):
        session.tell("nothing was changed")
        return USAGE
    base = int(trial["revision"]) if base is None else base
    if options.propose:
        made = _by_place(lines, lambda: session.client.config.propose(lines, options.reason, options.ticket, base))
        session.printer.document(made, [f"proposal {made['id']}: nothing is changed before somebody else approves it"])
        return OK
    made = _by_place(lines, lambda: session.client.config.apply(lines, options.reason, options.ticket, base))
    return applied(session, made)


def take_file(session: Session, known: Iterable[str], dry: bool = False) -> int:
    """Try the draft in a file and apply it; `dry`: only tell what it would change."""
    options = session.options
    options.dry_run = dry or options.dry_run
    wanted = understood(session, draft_text(session, options.file), known)
    base, standing = session.client.config.export(options.vo, [name for name in LISTS if name in wanted])
    lines = lines_between(standing, wanted, options.only)
    return proceed(session, lines, base if options.base is None else options.base)


def understood(session: Session, text: str, known: Iterable[str]) -> dict[str, list[Entry]]:
    """The document of a draft. JSON is read here, YAML by the server."""
    return read(text, known) if is_json(text) else checked(session.client.config.read_draft(text), known)


def applied(session: Session, made: Row) -> int:
    """Tell the change set that something became."""
    number = made["revision"]
    told = f"applied as revision {number}; it holds everywhere within two seconds" if number else "nothing was to be changed"
    session.printer.document(made, [told], key="revision")
    return OK


def reasoned(session: Session) -> None:
    """Unusable where nobody says why."""
    if not session.options.reason.strip():
        raise Unusable("No reason", "every change has one, for the history", "-m 'why'")


def told(session: Session, trial: Row) -> None:
    """A dry run: line by line, then what it would have done."""
    session.printer.document(trial, _lines(trial), key="revision")


def change_lines(lines: Sequence[Row]) -> Iterator[str]:
    """What lines of a dry run or a change set change, one below the other."""
    for line in lines:
        yield f"{place(line)}: {', '.join(differences(line))}"


def _lines(trial: Row) -> Iterator[str]:
    for line in trial["lines"]:
        if line["differs"]:
            yield from change_lines([line])
            holds = line["effective_before"], line["effective_after"]
            if line["kind"] == "config" and holds != (line["before"], line["after"]):
                yield f"  holds: {holds[0]} -> {holds[1]}"
    for share in (trial["steering"] or {}).get("shares", ()):
        before, after = share["percent"]
        yield f"  share {share['share']} for {share['vo']}: {_percent(before)} -> {_percent(after)}"
    yield from (trial[name]["sentence"] for name in ("decisions", "steering", "submission") if trial.get(name) is not None)


def _percent(value: Any) -> str:
    return "none" if value is None else f"{value:.3g} %"


def draft_text(session: Session, name: str) -> str:
    """What a file or standard input holds. Raises Unusable."""
    try:
        return session.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise Unusable(f"{name} cannot be read", str(getattr(problem, "strerror", None) or problem)) from None


def edited(session: Session, text: str) -> tuple[str, Path]:
    """The text as somebody leaves it in an editor (VISUAL, EDITOR, else vi), and the file in which it stands."""
    named = session.environ.get("VISUAL") or session.environ.get("EDITOR") or ""
    try:
        words = shlex.split(named) or ["vi"]
    except ValueError as problem:
        raise Unusable(f"{named} cannot be started", str(problem), EDITORS) from None
    handle, name = tempfile.mkstemp(prefix="broker-shares-", suffix=".json")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    try:
        code = subprocess.run([*words, name], check=False).returncode
    except OSError as problem:
        Path(name).unlink()
        raise Unusable(f"{words[0]} cannot be started", str(problem.strerror), EDITORS) from None
    if code:
        raise Unusable("Nothing was changed", f"{words[0]} ended with {code}", f"the draft is in {name}")
    return draft_text(session, name), Path(name)


def _by_place(lines: Sequence[Line], ask: Any) -> Row:
    """The answer; a refusal names what its faults are about, not numbers of lines."""
    try:
        answer: Row = ask()
    except Refused as refused:
        refused.faults = tuple(_named(fault, lines) for fault in refused.faults)
        if any(fault.rule == TWO for fault in refused.faults):
            refused.hint = "--propose keeps it for somebody else to approve"
        raise
    return answer


def _named(fault: Fault, lines: Sequence[Line]) -> Fault:
    found = re.fullmatch(r"lines\[(\d{1,4})\](.*)", fault.field)
    if found is None or int(found[1]) >= len(lines):
        return fault
    return Fault(place(lines[int(found[1])]) + found[2], fault.rule, fault.message)
