"""The only writer of the configuration: each write is one transaction with its check, its history row and the next revision.

A write takes the lock of the revision row first and holds it to the end of the transaction, so writers are in one order; readers
are never held up. Durations, sizes and lists are stored in one canonical form.
"""

from __future__ import annotations

from django.db import transaction

from broker_site.foundation.gdpconfig import keys
from broker_site.foundation.gdpconfig.keys import APP, BadConfig
from broker_site.foundation.gdpconfig.models import Change, Override, Revision
from broker_site.foundation.gdpconfig.reading import forget_on_commit
from broker_site.foundation.kernel.verdict import Problem

MAX_WHY = 2000
MAX_WHO = 150


def set_override(
    component: str, name: str, value: object, *, who: str, why: str, vo: str = "", app: str = APP, seen: int | None = None
) -> Change | None:
    """Set what holds instead of the default of key `name` (parts filled in), for one VO or for all (empty).

    value: the text of the key's type, or a Python value (seconds for durations, bytes for sizes).
    seen: the revision of the override that the author looked at, 0 for none; None = whatever is there.
    Answers None where that value is set already. BadConfig with every problem: unknown key, value of the wrong type or out of
    range, no reason, changed since `seen`.
    """
    problems = _signed(who, why)
    text = ""
    try:
        text = keys.KEYS.check(component, name, value, vo=vo, app=app)
    except BadConfig as bad:
        problems = bad.problems + problems
    if problems:
        raise BadConfig(*problems)
    with transaction.atomic():
        return _put(_place(app, component, name, vo), text, who, why, seen)


def remove_override(component: str, name: str, *, who: str, why: str, vo: str = "", app: str = APP) -> Change | None:
    """Take an override away, so that the next more general one or the default holds; None where there is none.

    Works for a key that is no longer declared, too. BadConfig as `set_override`.
    """
    if problems := _signed(who, why):
        raise BadConfig(*problems)
    with transaction.atomic():
        return _put(_place(app, component, name, vo), None, who, why)


def revert(change: Change, *, who: str, why: str) -> Change | None:
    """Bring back what `change` found: its `before`, or no override. Answers the new change, which names the one it reverts.

    None where that value holds already. BadConfig where the key would no longer take the old value.
    """
    problems = _signed(who, why)
    if change.before is not None:
        try:
            keys.KEYS.check(change.component, change.name, change.before, vo=change.vo, app=change.app)
        except BadConfig as bad:
            problems = bad.problems + problems
    if problems:
        raise BadConfig(*problems)
    with transaction.atomic():
        return _put(_place(change.app, change.component, change.name, change.vo), change.before, who, why, reverts=change)


def refuse_stale(component: str, name: str, *, vo: str, app: str, seen: int) -> None:
    """Keep other writers out until this transaction ends; BadConfig if the override is no longer the one of revision `seen`."""
    _locked()
    _refuse_stale(_override(_place(app, component, name, vo)), seen)


def _place(app: str, component: str, name: str, vo: str) -> dict[str, str]:
    return {"app": app, "component": component, "name": name, "vo": vo}


def _override(place: dict[str, str]) -> Override | None:
    return Override.objects.select_related("change").filter(**place).first()


def _put(
    place: dict[str, str], text: str | None, who: str, why: str, seen: int | None = None, reverts: Change | None = None
) -> Change | None:
    revision = _locked()
    override = _override(place)
    if seen is not None:
        _refuse_stale(override, seen)
    before = override.value if override else None
    if before == text:
        return None
    revision.number += 1
    revision.save(update_fields=["number"])
    change = Change.objects.create(
        revision=revision.number, **place, before=before, after=text, who=who.strip(), why=why.strip(), reverts=reverts
    )
    if text is None:
        Override.objects.filter(**place).delete()
    elif override is None:
        Override.objects.create(**place, value=text, change=change)
    else:
        override.value, override.change = text, change
        override.save(update_fields=["value", "change"])
    forget_on_commit()
    return change


def _locked() -> Revision:
    if (revision := Revision.objects.select_for_update().filter(id=1).first()) is not None:
        return revision
    Revision.objects.bulk_create([Revision()], ignore_conflicts=True)
    return Revision.objects.select_for_update().get(id=1)


def _refuse_stale(override: Override | None, seen: int) -> None:
    now = override.change_id if override else 0
    if now == seen:
        return
    what = f"{override.change.who} has set it to {override.value!r}" if override else "it was removed"
    raise BadConfig(Problem("seen", "stale", f"changed meanwhile: {what}; look at it and save again"))


def _signed(who: str, why: str) -> tuple[Problem, ...]:
    problems = []
    if not who.strip() or len(who) > MAX_WHO or "\x00" in who:
        problems.append(Problem("who", "required", f"the author of a change is needed (at most {MAX_WHO} characters)"))
    if not why.strip() or len(why) > MAX_WHY or "\x00" in why:
        problems.append(Problem("why", "required", f"a change needs its reason (at most {MAX_WHY} characters)"))
    return tuple(problems)
