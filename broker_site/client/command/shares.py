"""`share edit`, `diff` and `apply`: the share trees and work queues as a draft, tried before it holds."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from broker_site.client.command.drafting import APPLY, BASE, FILE, OF_VO, ONLY, edited, proceed, reasoned, take_file, understood
from broker_site.client.command.grammar import JSON, Verb, option
from broker_site.client.command.session import Session
from broker_site.client.drafts import lines_between, text_of
from broker_site.client.errors import OK, BrokerError

ROWS = ("shares", "work_queues")


def edit(session: Session) -> int:
    """The tree in an editor, then tried and applied; what is taken out there is removed. A draft that does not hold is kept."""
    options = session.options
    if not (options.print or options.dry_run):
        reasoned(session)
    base, standing = session.client.config.export(options.vo, ("shares",))
    text = text_of(standing)
    if options.print:
        session.printer.line(text.rstrip("\n"))
        session.tell(f"this is revision {base}; broker share apply FILE --base {base}")
        return OK
    draft, file = edited(session, text)
    of_vo = f" --vo {shlex.quote(options.vo)}" if options.vo else ""
    kept = f"the draft is in {file}: broker share apply {file} --only{of_vo} --base {base}"
    session.on_interrupt = kept  # not whether it holds: the answer may be on its way
    try:
        lines = lines_between(standing, understood(session, draft, ("shares",)), only=True)
        code = proceed(session, lines, base)
    except BrokerError as problem:
        problem.hint = f"{problem.hint}; {kept}" if problem.hint else kept
        raise
    if lines and (code != OK or options.dry_run):
        session.tell(kept)
    else:
        file.unlink()
    return code


def diff(session: Session) -> int:
    return take_file(session, ROWS, dry=True)


def apply(session: Session) -> int:
    return take_file(session, ROWS)


VERBS: Sequence[Verb] = (
    Verb(
        ("share", "edit"),
        "edit the share trees in an editor, see what that would do, apply it",
        edit,
        (
            option("vo", nargs="?", default="", metavar="VO", help="only the tree of this VO"),
            option("--print", action="store_true", help="print the trees as a draft instead"),
            *APPLY,
        ),
    ),
    Verb(("share", "diff"), "what a draft of shares and work queues would change", diff, (FILE, ONLY, OF_VO, BASE, JSON)),
    Verb(("share", "apply"), "try a draft of shares and work queues, then apply it", apply, (FILE, ONLY, OF_VO, BASE, *APPLY)),
)
