"""What a person writes into a form, or behind an action of the admin, as the interface takes it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workqueues.rules.task.changes import COLUMNS, Change
from workqueues.rules.task.changes_in_words import value_in_words
from workqueues.rules.task_parameters.declaration import parameters

_NUMBER = re.compile(r"-?\d{1,18}")
_WORDS: Mapping[str, object] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class FormField:
    """One line of the form of a change; `choices` where it is one of these, the first the default; `now`: what holds."""

    name: str
    doc: str
    choices: Sequence[str] = ()
    now: str = ""


_CHOICES: Mapping[str, Sequence[str]] = {"jobs": ("kill", "soft", "nokill")}
_HELD_BY: Mapping[str, str] = {**COLUMNS, "priority": "current_priority", "share": "gshare", "rule": "split_rule"}
"""Field -> column of the task that it changes."""
_PLACES = ("site", "nucleus")
"""Of these one is given, which may be empty; a form asks for its name and which of them it is."""
_WHICH = (
    FormField("place", "Whether the name is that of a site or of a nucleus.", _PLACES),
    FormField("name", "Queues or sites with commas, or a nucleus; empty: chosen again."),
)


def fields_with_values(change: Change, task: Mapping[str, Any]) -> Sequence[FormField]:
    """The same as `form_fields`, each with what holds of a task, of which the columns are given."""
    fields = form_fields(change)
    return [replace(f, now=value_in_words(_HELD_BY[f.name], task)) if f.name in _HELD_BY else f for f in fields]


def form_fields(change: Change) -> Sequence[FormField]:
    """What the form of a change asks for, beside the comment."""
    declared = [p for p in parameters(change.asked).values() if p.name != "comment"]
    fields = [FormField(p.name, p.doc, _CHOICES.get(p.name, ())) for p in declared if p.name not in _PLACES]
    return [*_WHICH, *fields] if len(fields) < len(declared) else fields


def values_of_form(change: Change, written: Mapping[str, str]) -> dict[str, object]:
    """The values of the texts of a form; what is left empty is not asked for, but the name of a place, and a rule that goes."""
    values: dict[str, object] = {}
    for name in (*(field.name for field in form_fields(change)), "comment"):
        if (text := written.get(name, "").strip()) and name in change.asked.model_fields:
            values[name] = _value(change, name, text)
    if "rule" in values:
        values.setdefault("value", None)
    if (place := written.get("place", "")) in _PLACES and place in change.asked.model_fields:
        values[place] = written.get("name", "").strip()
    return values


def values_of_text(change: Change, text: str) -> dict[str, object]:
    """The same of one line: `name=value` with blanks between, or the value alone where there is one field."""
    names = [name for name in change.asked.model_fields if name != "comment"]
    if len(names) == 1 and "=" not in text:
        return {names[0]: _value(change, names[0], text.strip())} if text.strip() else {}
    pairs = [part.partition("=") for part in text.split()]
    return {name: _value(change, name, value) for name, _, value in pairs}


def _value(change: Change, name: str, text: str) -> object:
    field = change.asked.model_fields.get(name)
    if field is None or field.annotation is str:
        return text
    if _NUMBER.fullmatch(text):
        return int(text)
    try:
        return float(text) if field.annotation is float else _WORDS.get(text.lower(), text)
    except ValueError:
        return text
