"""What a person writes into a form, or behind an action of the admin, as the interface takes it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workqueues.rules.task.changes import Change
from workqueues.rules.task_parameters.declaration import parameters

_NUMBER = re.compile(r"-?\d{1,18}")
_WORDS: Mapping[str, object] = {"true": True, "false": False, "null": None}


@dataclass(frozen=True, slots=True)
class FormField:
    """One line of the form of a change; `choices` where it is one of these, the first the default."""

    name: str
    doc: str
    choices: Sequence[str] = ()


_CHOICES: Mapping[str, Sequence[str]] = {"jobs": ("kill", "soft", "nokill")}
_EMPTY_SAYS = ("site", "nucleus")
"""Texts that mean something when they are empty: a form names which one it is for."""


def form_fields(change: Change) -> Sequence[FormField]:
    """What the form of a change asks for, beside the comment."""
    declared = parameters(change.asked).values()
    return [FormField(p.name, p.doc, _CHOICES.get(p.name, ())) for p in declared if p.name != "comment"]


def values_of_form(change: Change, written: Mapping[str, str]) -> dict[str, object]:
    """The values of the texts of a form; what is left empty is not asked for, but a site or nucleus that `where` names."""
    values: dict[str, object] = {}
    for name in (*(field.name for field in form_fields(change)), "comment"):
        text = written.get(name, "").strip()
        if text or (name in _EMPTY_SAYS and written.get("where") == name):
            values[name] = _value(change, name, text)
    return values


def values_of_text(change: Change, text: str) -> dict[str, object]:
    """The same of one line: `name=value` with blanks between, or the value alone where there is one field."""
    names = [field.name for field in form_fields(change)]
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
