"""Django's admin of users, roles, credentials and the audit."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from broker_site.foundation.access.authentication import authenticate
from broker_site.foundation.access.credentials import enrolment_faults, issue_enrolment, issue_user_token, revoke
from broker_site.foundation.access.models import Audit, AuditSeal, Credential, Role, User
from broker_site.foundation.access.roles import ROLES
from broker_site.foundation.adminfields import NamedFields, NamedRows, NamedValues
from broker_site.foundation.adminpages import AuditedAdmin, ReadingAdmin, ReadOnlyAdmin

_DAY_S = 86_400
_MADE_ELSEWHERE = "Pilots get their tokens by enrolling, child brokers where they are added."


class RoleInline(NamedFields, admin.TabularInline):
    model = Role
    formset = NamedRows
    extra = 0


@admin.register(User)
class UserAdmin(AuditedAdmin, DjangoUserAdmin):
    inlines = [RoleInline]
    filter_horizontal = ()  # its two lists have parts without a name
    list_display = ["username", "email", "is_active", "is_staff", "is_superuser", "last_login"]


admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(AuditedAdmin, DjangoGroupAdmin):
    filter_horizontal = ()


@admin.register(Role)
class RoleAdmin(AuditedAdmin):
    list_display = ["user", "vo", "role"]
    list_filter = [("vo", NamedValues), "role"]
    list_select_related = ["user"]
    search_fields = ["user__username", "vo"]
    autocomplete_fields = ["user"]


class CredentialForm(forms.ModelForm):
    """What a new credential is for; the secret is ours to make."""

    kind = forms.ChoiceField(choices=[(k, k) for k in ("user", "enrolment")], help_text=_MADE_ELSEWHERE)
    roles = forms.MultipleChoiceField(
        choices=[(r, r) for r in ROLES],
        required=False,
        help_text="Of a user token: leave only these roles. None: all that the user has.",
    )
    days = forms.IntegerField(min_value=1, max_value=3650, required=False, help_text="Days until it expires. Empty: it does not.")

    class Meta:
        model = Credential
        fields = ["kind", "user", "vo", "roles", "site", "queues", "pilot_kind", "owner", "owner_group", "days", "note"]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        if data.get("kind") == "user" and not data.get("user"):
            self.add_error("user", "A user token needs a user.")
        if data.get("kind") == "enrolment" and not data.get("queues"):
            self.add_error("queues", "An enrolment secret needs a computing queue.")
        elif data.get("kind") == "enrolment":
            given = {field: data.get(field) or "" for field in ("site", "owner", "owner_group")}
            private = data.get("pilot_kind") == Credential.PilotKind.PRIVATE
            for field, message in enrolment_faults(data["queues"], **given, private=private).items():
                self.add_error(field, message)
        return data


@admin.register(Credential)
class CredentialAdmin(NamedFields, admin.ModelAdmin):
    """Credentials: made here (the secret is shown once), revoked here, never changed or deleted."""

    form = CredentialForm
    list_display = [
        *("prefix", "kind", "user", "vo", "queues", "pilot_kind", "owner", "subject"),
        *("created", "expires_at", "revoked_at", "last_used"),
    ]
    list_filter = ["kind", ("vo", NamedValues), "pilot_kind", ("revoked_at", admin.EmptyFieldListFilter)]
    list_select_related = ["user"]
    search_fields = ["prefix", "user__username", "queues", "owner", "subject"]
    autocomplete_fields = ["user"]
    actions = ["revoke_selected"]
    show_full_result_count = False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        """The form's fields when adding; what is known of an existing one, its digest apart."""
        if obj is None:
            return list(CredentialForm.Meta.fields)
        return [f.name for f in Credential._meta.concrete_fields if f.name not in ("id", "secret")]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Revoke instead; rows are forgotten a month after they expired."""
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Whoever may change credentials by Django's own permission."""
        return request.user.has_perm("access.change_credential")

    def save_model(self, request: HttpRequest, obj: Any, form: forms.ModelForm, change: bool) -> None:
        """Make the credential; its text is kept for the answer to this request only."""
        data = form.cleaned_data
        common = {
            "vo": data["vo"],
            "user": data["user"],
            "seconds": data["days"] * _DAY_S if data["days"] else None,
            "note": data["note"],
            "by": authenticate(request),
        }
        if data["kind"] == "user":
            issued = issue_user_token(roles=data["roles"], **common)
        else:
            given = {field: data[field] for field in ("site", "owner", "owner_group")}
            issued = issue_enrolment(*data["queues"], **given, **common)
        obj.__dict__.update(issued.credential.__dict__)
        request.issued_text = issued.text  # type: ignore[attr-defined]

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """Show the secret instead of redirecting: it must not pass through a cookie or an address."""
        context = {
            **self.admin_site.each_context(request),
            "title": "Credential made",
            "opts": self.opts,
            "credential": obj,
            "text": cast("Any", request).issued_text,
        }
        return TemplateResponse(request, "admin/access/credential/issued.html", context, headers={"Cache-Control": "no-store"})

    @admin.action(description="Revoke selected credentials (of enrolments, also their pilots)", permissions=["revoke"])
    def revoke_selected(self, request: HttpRequest, queryset: QuerySet[Credential]) -> None:
        count = revoke(queryset, reason="revoked in the admin", by=authenticate(request))
        self.message_user(request, f"{count} credentials revoked; effective within five seconds.", messages.SUCCESS)


@admin.register(Audit)
class AuditAdmin(ReadingAdmin):
    list_display = ["at", "who", "kind", "vo", "act", "object", "outcome", "status", "trace_id"]
    list_filter = ["outcome", "kind", ("vo", NamedValues)]
    search_fields = ["who", "act", "object", "trace_id"]
    date_hierarchy = "at"
    ordering = ["-id"]
    show_full_result_count = False


@admin.register(AuditSeal)
class AuditSealAdmin(ReadOnlyAdmin):
    """`manage.py check_audit` holds the rows against them."""

    list_display = ["number", "at", "last_id", "n_rows", "hash"]
