"""Forms of the admin pages: one override, made for the key that it overrides, and the reason for removing and reverting."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from django import forms
from django.utils.html import escape

from broker_site.foundation.gdpconfig import keys
from broker_site.foundation.gdpconfig.changesets import MAX_WHY
from broker_site.foundation.gdpconfig.keys import MAX_VO, BadConfig, Key
from broker_site.foundation.gdpconfig.models import Override
from broker_site.foundation.gdpconfig.store import refuse_stale
from broker_site.foundation.gdpconfig.texts import KINDS, UNSET
from broker_site.foundation.kernel import clock


class ReasonForm(forms.Form):
    why = forms.CharField(label="Reason", max_length=MAX_WHY, widget=forms.Textarea(attrs={"rows": 2, "cols": 80}))


class OverrideForm(forms.ModelForm):
    """One override of `key`. What it refuses stands next to the field: what the key's type, range, choices or rule say.

    `form_for` makes the fields; the cleaned form has `name` (parts filled in) and `text` (the canonical value).
    """

    key: ClassVar[Key]
    name: str
    text: str

    class Meta:
        model = Override
        # The form's own fields of the same names are checked by the key, not by the columns.
        exclude: ClassVar[list[str]] = ["app", "component", "name", "vo", "value", "until", "afterwards", "change"]

    def clean(self) -> dict[str, Any]:
        """Fill in the name, check key, VO and value, and keep other writers out until the save; problems go to their fields."""
        cleaned = self.cleaned_data
        if self.errors:
            return cleaned
        place: Override = self.instance
        if cleaned["end"] is not None and cleaned["end"] <= clock.now():
            self.add_error("end", "The end is to be a time to come.")
            return cleaned
        try:
            self.name = place.name or self.key.fill(**{part: cleaned[f"part_{part}"] for part in self.key.parts})
            vo = place.vo if place.pk else cleaned["vo"]
            self.text = keys.KEYS.check(self.key.component, self.name, cleaned["value"], vo=vo, app=self.key.app)
            refuse_stale(self.key.component, self.name, vo=vo, app=self.key.app, seen=cleaned["seen"])
        except BadConfig as bad:
            for problem in bad.problems:
                candidates = (problem.field, f"part_{problem.field}")
                field = next((name for name in candidates if name in self.fields and name != "seen"), None)
                self.add_error(field, problem.message)
            return cleaned
        place.app, place.component, place.name, place.vo, place.value = self.key.app, self.key.component, self.name, vo, self.text
        return cleaned


def form_for(key: Key, override: Override | None) -> type[OverrideForm]:
    """The form for a new override of `key`, or for one that is there: then key, parts and VO stay."""
    fields: dict[str, Any] = {}
    if override is None:
        for part in key.parts:
            fields[f"part_{part}"] = forms.CharField(
                label=part, max_length=keys.MAX_NAME, help_text=escape(f"Stands for <{part}> in {key.name}.")
            )
        fields["vo"] = forms.CharField(
            label="VO", max_length=MAX_VO, required=False, help_text="Empty: for all VOs that have no override of their own."
        )
    fields["value"] = _value_field(key, override.value if override else "")
    fields["end"] = forms.DateTimeField(
        label="Until (UTC)",
        required=False,
        initial=override.until if override else None,
        widget=forms.DateTimeInput(attrs={"size": 20, "autocomplete": "off"}),
        help_text="When it ends by itself, as 2026-12-24 18:00; empty: it stays.",
    )
    fields["why"] = forms.CharField(
        label="Reason",
        max_length=MAX_WHY,
        widget=forms.Textarea(attrs={"rows": 2, "cols": 80}),
        help_text="Kept in the history with your name and the value before.",
    )
    fields["seen"] = forms.IntegerField(widget=forms.HiddenInput, initial=override.change.change_set_id if override else 0)
    return cast("type[OverrideForm]", type("OverrideForm", (OverrideForm,), {**fields, "key": key, "__module__": __name__}))


def _value_field(key: Key, now: str) -> forms.Field:
    words = list(key.choices) if key.type == "enum" else ["true", "false"] if key.type == "bool" else []
    if words:
        offered = [*words, UNSET] if key.default is None else words
        kept = [] if not now or now in offered else [now]
        return forms.ChoiceField(
            label="Value", choices=[(word, word) for word in kept + offered], initial=now or key.write(key.default)
        )
    widget = (
        forms.Textarea(attrs={"rows": 12, "cols": 80, "spellcheck": "false"})
        if key.type == "json"
        else forms.TextInput(attrs={"size": 40, "autocomplete": "off", "spellcheck": "false"})
    )
    # What is long is edited from what holds.
    now = now or (key.write(key.default) if key.type in ("json", "list") else "")
    form = KINDS[key.type].form
    help_text = f"{form}{f', in {key.unit}' if key.unit else ''}{f'; {key.bounds}' if key.bounds != form else ''}"
    if key.default is None:
        help_text += f"; or {UNSET}, as the default"
    # An empty text and an empty list are values too.
    required = key.type not in ("str", "list")
    return forms.CharField(
        label="Value", widget=widget, initial=now, required=required, help_text=escape(f"{help_text[:1].upper()}{help_text[1:]}.")
    )
