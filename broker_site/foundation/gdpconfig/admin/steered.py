"""What the admin pages of steered tables do alike: each save is a set of changes of one line, with a reason; removal too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse

from broker_site.foundation.adminpages import AuditedAdmin, values
from broker_site.foundation.gdpconfig.admin.changes import confirm
from broker_site.foundation.gdpconfig.changesets import MAX_WHY, Draft, Line, Place
from broker_site.foundation.gdpconfig.forms import ReasonForm
from broker_site.foundation.gdpconfig.keys import BadConfig
from broker_site.foundation.gdpconfig.line_kinds import LINE_KINDS
from broker_site.foundation.gdpconfig.store import apply, hold
from broker_site.foundation.kernel.verdict import Problem


class SteeredForm(ModelForm):
    """One row, held to the rules of the service; problems stand beside their fields.

    `line_place` and `line_columns` of a derived form say what the line is. `seen`: the revision of the row that is edited.
    """

    why = forms.CharField(
        label="Reason",
        max_length=MAX_WHY,
        widget=forms.Textarea(attrs={"rows": 2, "cols": 80}),
        help_text="Kept in the history with your name and what was before.",
    )
    seen = forms.IntegerField(widget=forms.HiddenInput, required=False)
    places: Mapping[str, str] = {}
    """Field of a problem -> field of the form, where they differ."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            place = self.line_place(self.instance)
            standing = LINE_KINDS[place.kind].standing([place]).get(place)
            self.fields["seen"].initial = standing.revision if standing else 0

    def line_place(self, row: Any) -> Place:
        raise NotImplementedError

    def line_columns(self, cleaned: Mapping[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def _post_clean(self) -> None:
        """After the row is put together: the rules of its kind, while other writers are kept out until the save."""
        # Not by the stock words: the rules of the kind have better ones, and judge the whole table.
        self.instance.validate_constraints = lambda **_: None
        super()._post_clean()  # type: ignore[misc]
        if self.errors:
            return
        try:
            hold(Draft((self.line(),), "", "", "admin"))
        except BadConfig as bad:
            for problem in bad.problems:
                self._tell(problem)

    def line(self) -> Line:
        place, seen = self.line_place(self.instance), self.cleaned_data.get("seen")
        changed = not self.instance._state.adding
        return Line(
            place.component,
            place.name,
            self.line_columns(self.cleaned_data),
            vo=place.vo,
            app=place.app,
            kind=place.kind,
            seen=seen if changed else None,
            says_before=not changed,
        )

    def _tell(self, problem: Problem) -> None:
        if problem.rule == "stale" and self.instance._state.adding:
            problem = Problem("lines[0].key", "unique", f"there is a {self._meta.model._meta.verbose_name} of that name already")
        column = problem.field.removeprefix("lines[0]").lstrip(".")
        field = self.places.get(column, column)
        self.add_error(field if field in self.fields else None, forms.ValidationError(problem.message, code=problem.rule))


class SteeredAdmin(AuditedAdmin):
    """Writes through the service of change sets and audits; rows are removed on a page that asks the reason."""

    change_form_template = "gdpconfig/steered_form.html"
    actions = None

    def get_urls(self) -> list[URLPattern]:
        """The page that removes a row, before the stock ones."""
        return [
            path("<path:pk>/remove/", self.admin_site.admin_view(self.remove_view), name=f"{self._name}_remove"),
            *super().get_urls(),
        ]

    @property
    def _name(self) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}"

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never by the stock pages, which ask no reason."""
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Apply the line; the form has checked it and holds the lock."""
        before = values(type(obj)._default_manager.get(pk=obj.pk)) if change else None
        place = form.line_place(obj)
        apply(Draft((form.line(),), request.user.get_username(), form.cleaned_data["why"], "admin"))
        obj.pk = self.pk_of(place)
        obj._state.adding = False
        self.note(request, "change" if change else "add", obj, before, values(type(obj)._default_manager.get(pk=obj.pk)))

    def pk_of(self, place: Place) -> Any:
        """The key of the row that stands at a place."""
        raise NotImplementedError

    def place_of(self, obj: Any) -> Place:
        raise NotImplementedError

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The form, with the way to the removal."""
        context = dict(extra_context or {})
        if self._may_remove(request) and self.get_object(request, object_id) is not None:
            context["remove_at"] = reverse(f"admin:{self._name}_remove", args=[object_id])
        return super().change_view(request, object_id, form_url, context)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Its lines in sets of changes: Django's own history knows nothing of them."""
        place = self.place_of(get_object_or_404(self.model, pk=object_id))
        query = urlencode({"component": place.component, "name": place.name})
        return redirect(f"{reverse('admin:gdpconfig_change_changelist')}?{query}")

    def remove_view(self, request: HttpRequest, pk: str) -> HttpResponse:
        """Remove a row, with a reason."""
        if not self._may_remove(request):
            raise PermissionDenied
        row = get_object_or_404(self.model, pk=pk)
        place, before = self.place_of(row), values(row)
        standing = LINE_KINDS[place.kind].standing([place])[place]
        form = ReasonForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            line = Line(place.component, place.name, remove=True, vo=place.vo, app=place.app, kind=place.kind)
            try:
                apply(Draft((line,), request.user.get_username(), form.cleaned_data["why"], "admin"))
            except BadConfig as bad:
                form.add_error(None, str(bad))
            else:
                self.note(request, "delete", row, before, None)
                self.message_user(request, f"{place} was removed.", messages.SUCCESS)
                return redirect(f"admin:{self._name}_changelist")
        return confirm(self, request, form, f"Remove {place}", "Remove", [(str(place), standing.text, "nothing")])

    def _may_remove(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm(f"{self.opts.app_label}.delete_{self.opts.model_name}"))
