"""The only writer of the configuration: a set of changes is applied in one transaction with its checks and the next revision.

A writer takes the lock of the revision row first and holds it to the end of the transaction, so writers are in one order; readers
are never held up. What somebody else has changed meanwhile is refused, with who that was. Texts are stored in one canonical form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby

from django.conf import settings
from django.db import transaction

from broker_site.foundation.gdpconfig import keys
from broker_site.foundation.gdpconfig.changesets import (
    CONFIG,
    MOST_LINES,
    Draft,
    Line,
    Place,
    Source,
    Standing,
    Step,
    in_words,
    signature_problems,
)
from broker_site.foundation.gdpconfig.keys import APP, BadConfig
from broker_site.foundation.gdpconfig.line_kinds import LINE_KINDS, declare_kind
from broker_site.foundation.gdpconfig.models import Change, ChangeSet, Override, Revision, Steered
from broker_site.foundation.gdpconfig.override_lines import OverrideLines
from broker_site.foundation.gdpconfig.row_lines import ending_rows
from broker_site.foundation.gdpconfig.two_person import RULE, alone_problems, takes_two
from broker_site.foundation.kernel import clock
from broker_site.foundation.kernel.verdict import Problem

MOST_FAULTY = 50
"""Lines with a problem after which no further one is looked at: to find the nearest known name takes time."""

declare_kind(CONFIG, OverrideLines())


def apply(draft: Draft, *, approved_by: str = "") -> ChangeSet | None:
    """Apply all lines or none. Answers the new set with the lines that changed something; None where none does.

    approved_by: the second person, whom some keys take (rule `two_person`; `proposals` is the way).

    BadConfig with every problem: of author, reason and ticket, and of lines as `lines[0].value`: unknown key, value of the wrong
    type or out of range, one place twice, a place that was changed meanwhile (rule `stale`).
    """
    texts = _checked(draft)
    with transaction.atomic():
        revision = _locked()
        steps = [step for step in _steps(draft, texts, revision.number) if step.differs]
        refuse_alone(steps, approved_by)
        return _write(draft, steps, revision, approved_by) if steps else None


def refuse_alone(steps: Sequence[Step], approved_by: str = "") -> None:
    """BadConfig where a step takes a second person and there is none."""
    if settings.TWO_PERSON and not approved_by and (problems := list(alone_problems(steps))):
        raise BadConfig(*problems)


def hold(draft: Draft) -> list[Step]:
    """What applying would do, keeping other writers out until this transaction ends; BadConfig as `preview`."""
    _locked()
    steps = preview(draft)
    refuse_alone(steps)
    return steps


def preview(draft: Draft) -> list[Step]:
    """What applying would do now, writing nothing; BadConfig as `apply`, without a reason too."""
    texts = _checked(draft, signed=False)
    newest = Revision.objects.filter(id=1).values_list("number", flat=True).first()
    return _steps(draft, texts, newest or 0)


def set_override(
    component: str,
    name: str,
    value: object,
    *,
    who: str,
    why: str,
    vo: str = "",
    app: str = APP,
    seen: int | None = None,
    until: datetime | None = None,
    source: Source = "command",
) -> Change | None:
    """Set what holds instead of the default of key `name` (parts filled in), for one VO or for all (empty): a set of one line.

    value: the text of the key's type, or a Python value (seconds for durations, bytes for sizes).
    seen: the revision of the override that the author looked at, 0 for none; None = whatever is there.
    Answers None where that value is set already. BadConfig as `apply`, the fields without their line.
    """
    return _one(Line(component, name, value, vo=vo, app=app, seen=seen, until=until), who, why, source)


def remove_override(
    component: str,
    name: str,
    *,
    who: str,
    why: str,
    vo: str = "",
    app: str = APP,
    seen: int | None = None,
    source: Source = "command",
) -> Change | None:
    """Take an override away, so that the next more general one or the default holds; None where there is none.

    Works for a key that is no longer declared, too. BadConfig as `set_override`.
    """
    return _one(Line(component, name, remove=True, vo=vo, app=app, seen=seen), who, why, source)


def revert(change_set: ChangeSet, *, who: str, why: str, source: Source = "command") -> ChangeSet | None:
    """Bring back what the lines of a set found, by a new set that names it; None where all of that holds already.

    BadConfig where a place was changed since (rule `stale`), where its kind would no longer take the old value, and where what
    it found was temporary and has ended (rule `ended`).
    """
    return apply(revert_draft(change_set, who=who, why=why, source=source))


def revert_draft(change_set: ChangeSet, *, who: str, why: str, source: Source) -> Draft:
    """The lines that `revert` applies; those left out whose old value holds already. BadConfig with rule `ended`."""
    lines = [_back(change) for change in change_set.lines.order_by("id")]
    now, ended, kept = clock.now(), list[Problem](), list[Line]()
    held = _standing([line.place for line in lines])
    for line in lines:
        stands = held.get(line.place)
        if (stands.text if stands else None) == line.value and (stands.until if stands else None) == line.until:
            continue
        if line.until is not None and line.until <= now:
            message = f"{line.place} was temporary and has ended: set the value that shall hold"
            ended.append(Problem(f"lines[{len(kept)}].until", "ended", message))
        kept.append(line)
    if ended:
        raise BadConfig(*ended)
    return Draft(kept, who, why, source, reverts=change_set.revision)


def end_expired(now: datetime) -> int:
    """End what was temporary and whose time is over, in one set; the lasting values that it was laid over hold again.

    Answers how many.
    """
    if not (Override.objects.filter(until__lte=now).exists() or Steered.objects.filter(until__lte=now).exists()):
        return 0
    with transaction.atomic():
        revision = _locked()
        over = Override.objects.select_related("change__change_set").filter(until__lte=now).order_by("until", "id")[:MOST_LINES]
        steps = [_ending(number, override) for number, override in enumerate(over)]
        rows = list(Steered.objects.filter(until__lte=now).order_by("kind", "id")[: MOST_LINES - len(steps)])
        for kind, marks in groupby(rows, lambda mark: mark.kind):
            steps += ending_rows(kind, list(marks), len(steps))
        if steps:
            _write(Draft((), "expiry", "their time is over", "expiry"), steps, revision)
        return len(steps)


def refuse_stale(component: str, name: str, *, vo: str, app: str, seen: int) -> None:
    """Keep other writers out until this transaction ends; BadConfig if the override is no longer the one of revision `seen`, or
    takes a second person to change.
    """
    revision = _locked()
    line = Line(component, name, remove=True, vo=vo, app=app, seen=seen)
    if settings.TWO_PERSON and takes_two(line.place):
        raise BadConfig(Problem("seen", RULE, f"{line.place} takes two people: propose the change on the page Configuration"))
    if problems := list(_stale((line,), _standing([line.place]), None, revision.number)):
        raise BadConfig(*(_unnumbered(problem) for problem in problems))


def _one(line: Line, who: str, why: str, source: Source) -> Change | None:
    try:
        made = apply(Draft((line,), who, why, source))
    except BadConfig as bad:
        order = {"who": 1, "why": 1}
        told = sorted(map(_unnumbered, bad.problems), key=lambda problem: order.get(problem.field, 0))
        raise BadConfig(*told) from None
    return made.lines.get() if made else None


def _unnumbered(problem: Problem) -> Problem:
    return replace(problem, field=problem.field.removeprefix("lines[0].").replace("lines[0]", "seen"))


def _checked(draft: Draft, *, signed: bool = True) -> list[str | None]:
    """The text after each line; BadConfig with every problem that needs no database."""
    problems = list(signature_problems(draft)) if signed else []
    if len(draft.lines) > MOST_LINES:
        message = f"{len(draft.lines)} lines are more than the {MOST_LINES} of one set: split them"
        raise BadConfig(*problems, Problem("lines", "range", message))
    times = Counter(line.place for line in draft.lines)
    texts: list[str | None] = []
    now, faulty = clock.now(), 0
    for number, line in enumerate(draft.lines):
        text, wrong = _text_of(line, now)
        if times[line.place] > 1:
            wrong.append(Problem("", "twice", f"{line.place} stands in {times[line.place]} lines"))
        texts.append(text)
        problems += [replace(p, field=f"lines[{number}].{p.field}".rstrip(".")) for p in wrong]
        faulty += bool(wrong)
        if faulty >= MOST_FAULTY and number + 1 < len(draft.lines):
            problems.append(Problem("lines", "range", f"{faulty} of the first {number + 1} lines are refused; no more were read"))
            break
    if problems:
        raise BadConfig(*problems)
    return texts


def _text_of(line: Line, now: datetime) -> tuple[str | None, list[Problem]]:
    if line.kind not in LINE_KINDS:
        return None, [Problem("kind", "choice", f"{line.kind[:40]!r} is no kind of line; there is: {', '.join(LINE_KINDS)}")]
    problems: list[Problem] = []
    if line.until is not None and line.remove:
        problems.append(Problem("until", "rule", "what is removed has no end"))
    elif line.until is not None and line.until <= now:
        problems.append(Problem("until", "range", "the end is to be a time to come"))
    if line.remove:
        return None, problems
    try:
        return LINE_KINDS[line.kind].check(line), problems
    except BadConfig as bad:
        return None, [*bad.problems, *problems]


def _steps(draft: Draft, texts: Sequence[str | None], newest: int) -> list[Step]:
    """The lines against what stands; BadConfig where one rests on what is no longer so."""
    held = _standing([line.place for line in draft.lines])
    if problems := list(_stale(draft.lines, held, draft.base, newest)):
        raise BadConfig(*problems)
    steps = []
    for number, (line, text) in enumerate(zip(draft.lines, texts, strict=True)):
        stands = held.get(line.place)
        before, until_before = (stands.text, stands.until) if stands else (None, None)
        steps.append(Step(number, line.place, before, until_before, text, line.until))
    if wrong := [problem for kind, of_kind in _by_kind(steps) for problem in LINE_KINDS[kind].together(of_kind)]:
        raise BadConfig(*wrong)
    return steps


def _by_kind(steps: Sequence[Step]) -> Iterator[tuple[str, list[Step]]]:
    for kind in dict.fromkeys(step.place.kind for step in steps):
        yield kind, [step for step in steps if step.place.kind == kind]


def _standing(places: Sequence[Place]) -> dict[Place, Standing]:
    held: dict[Place, Standing] = {}
    for kind in {place.kind for place in places}:
        held |= LINE_KINDS[kind].standing([place for place in places if place.kind == kind])
    return held


def _stale(lines: Sequence[Line], held: Mapping[Place, Standing], base: int | None, newest: int) -> Iterator[Problem]:
    if base is not None and base > newest:
        yield Problem("base", "range", f"there is no revision {base}; the newest is {newest}")
        return
    since = _changed_since(lines, base) if base is not None and base < newest else {}
    for number, line in enumerate(lines):
        stands = held.get(line.place)
        other = (
            (line.seen is not None and line.seen != (stands.revision if stands else 0))
            or (line.says_before and line.before != (stands.text if stands else None))
            or line.place in since
        )
        if not other:
            continue
        change = since.get(line.place) or (None if stands and line.kind == CONFIG else _last(line.place))
        if change and line.kind != CONFIG:
            what = f"by {change.who}: {in_words(line.kind, change.before, change.after)}"
        elif stands:
            what = f"{stands.who} has set it to {stands.text[:80]!r}"
        else:
            what = f"it was removed by {change.who}" if change else "nothing is set there"
        yield Problem(f"lines[{number}]", "stale", f"{line.place} was changed meanwhile: {what}; look at it and save again")


def _changed_since(lines: Sequence[Line], base: int) -> dict[Place, Change]:
    """The newest change of each place that a later set has changed."""
    names = {line.name for line in lines}
    later = Change.objects.select_related("change_set").filter(change_set__gt=base, name__in=names).order_by("change_set_id")
    wanted = {line.place for line in lines}
    return {change.place: change for change in later if change.place in wanted}


def _last(place: Place) -> Change | None:
    return Change.objects.select_related("change_set").filter(**place._asdict()).order_by("-change_set_id").first()


def _write(draft: Draft, steps: Sequence[Step], revision: Revision, approved_by: str = "") -> ChangeSet:
    """Called under the lock."""
    revision.number += 1
    revision.save(update_fields=["number"])
    made = ChangeSet.objects.create(
        revision=revision.number,
        who=draft.who.strip(),
        why=draft.why.strip(),
        ticket=draft.ticket.strip(),
        source=draft.source,
        approved_by=approved_by,
        reverts_id=draft.reverts,
    )
    changes = Change.objects.bulk_create(
        Change(
            change_set=made,
            **step.place._asdict(),
            before=step.before,
            until_before=step.until_before,
            after=step.after,
            until=step.until,
        )
        for step in steps
    )
    for kind in {change.kind for change in changes}:
        LINE_KINDS[kind].write([change for change in changes if change.kind == kind])
    return made


def _back(change: Change) -> Line:
    """The line that takes a change back."""
    return Line(
        change.component,
        change.name,
        change.before,
        remove=change.before is None,
        vo=change.vo,
        app=change.app,
        until=change.until_before,
        kind=change.kind,
        says_before=True,
        before=change.after,
    )


def _ending(number: int, override: Override) -> Step:
    """What follows a temporary override; nothing where its key would no longer take the lasting value."""
    after = override.afterwards
    if after is not None:
        try:
            keys.KEYS.check(override.component, override.name, after, vo=override.vo, app=override.app)
        except BadConfig:
            after = None
    return Step(number, override.place, override.value, override.until, after, None)


def _locked() -> Revision:
    if (revision := Revision.objects.select_for_update().filter(id=1).first()) is not None:
        return revision
    Revision.objects.bulk_create([Revision()], ignore_conflicts=True)
    return Revision.objects.select_for_update().get(id=1)
