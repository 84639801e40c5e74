"""Tables of access: users, their roles per VO, credentials, and the audit. Columns and constraints only."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from broker_site.foundation.access.roles import ROLES

_plain_name = RegexValidator(r"\A[A-Za-z0-9][A-Za-z0-9_.-]*\Z", "Letters, digits, dot, hyphen and underscore only.")


class User(AbstractUser):
    """A person or a service that signs in. What it may do stands in its roles; `is_superuser` may everything but submit."""


class Role(models.Model):
    """A user holds a role in one VO. Removing the row takes the right away with the next request."""

    user = models.ForeignKey(User, models.CASCADE, related_name="roles")
    vo = models.CharField("VO", max_length=64, validators=[_plain_name])
    role = models.CharField(max_length=16, choices=[(r, r) for r in ROLES])

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "vo", "role"], name="access_role_once"),
            models.CheckConstraint(condition=Q(role__in=ROLES), name="access_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.role} in {self.vo}"


class Credential(models.Model):
    """A secret that somebody holds; we keep its SHA-256 only.

    Kinds: `user` (stands on its user's roles), `enrolment` (lets the pilots of its queues enrol), `pilot` (lets one pilot ask for
    jobs at one queue; made from an enrolment, its `parent`, whose pilot kind, owner and group it has), `child` (lets a child
    broker pull work; it lasts until it is revoked). Revoking an enrolment revokes its pilots; an expired one only enrols nobody
    any more, which is how a secret is rotated without losing pilots. Job tokens are signed and have no row.
    """

    class Kind(models.TextChoices):
        USER = "user"
        ENROLMENT = "enrolment"
        PILOT = "pilot"
        CHILD = "child"

    class PilotKind(models.TextChoices):
        """Whose work pilots do: that of everybody, or of one owner (decision H4)."""

        GENERIC = "generic"
        PRIVATE = "private"

    kind = models.CharField(max_length=10, choices=Kind.choices)
    prefix = models.CharField(max_length=16, help_text="The first characters of the secret, to name it by.")
    secret = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the secret, hexadecimal.")
    user = models.ForeignKey(
        User,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="credentials",
        help_text="On whose rights the credential stands.",
    )
    parent = models.ForeignKey("self", models.RESTRICT, null=True, blank=True, related_name="children")
    vo = models.CharField(
        "VO", max_length=64, blank=True, validators=[_plain_name], help_text="Limited to this VO; empty: no limit."
    )
    site = models.CharField(max_length=128, blank=True)
    queues = ArrayField(
        models.CharField(max_length=128),
        default=list,
        db_default=[],
        blank=True,
        help_text="The computing queues, of one site, whose pilots enrol with it, separated by commas; of a pilot its own.",
    )
    pilot_kind = models.CharField(
        max_length=8,
        choices=PilotKind.choices,
        default=PilotKind.GENERIC,
        db_default=PilotKind.GENERIC,
        help_text="Of an enrolment secret: generic pilots do the work of everybody in the VO, private ones that of an owner.",
    )
    owner = models.CharField(max_length=150, blank=True, db_default="", help_text="Whose work private pilots do: a user name.")
    owner_group = models.CharField(
        max_length=64,
        blank=True,
        db_default="",
        help_text="The working group in which private pilots do it, and where that shares its jobs all its work; empty: in any.",
    )
    subject = models.UUIDField(null=True, blank=True, help_text="The pilot.")
    claims = models.JSONField(
        default=dict, blank=True, help_text='Further limits: {"roles": ["submitter"]} leaves only these roles.'
    )
    note = models.CharField(max_length=200, blank=True, help_text="What it is for.")
    created = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_used = models.DateField(
        null=True, blank=True, editable=False, help_text="The last day (UTC) on which it was shown to us."
    )

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~Q(kind="user") | Q(user__isnull=False), name="access_credential_user_has_user"),
            models.CheckConstraint(condition=~Q(kind="enrolment") | ~Q(queues=[]), name="access_credential_enrolment_has_queue"),
            models.CheckConstraint(condition=~Q(kind="pilot") | Q(queues__len=1), name="access_credential_pilot_has_one_queue"),
            models.CheckConstraint(
                condition=Q(pilot_kind="generic", owner="", owner_group="") | Q(pilot_kind="private") & ~Q(owner=""),
                name="access_credential_owner_of_private",
                violation_error_message="Private pilots have an owner, generic ones neither owner nor group.",
            ),
            models.CheckConstraint(
                condition=~Q(kind="pilot") | Q(subject__isnull=False, parent__isnull=False, expires_at__isnull=False),
                name="access_credential_pilot_has_all",
            ),
            models.CheckConstraint(
                condition=~Q(kind="child") | Q(user__isnull=True, expires_at__isnull=True), name="access_credential_child_lasts"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=["user", "enrolment", "pilot", "child"]), name="access_credential_kind_known"
            ),
        ]
        indexes = [
            models.Index(fields=["prefix"], name="access_credential_prefix"),
            models.Index(fields=["subject"], name="access_credential_subject", condition=Q(subject__isnull=False)),
            models.Index(fields=["id"], name="access_credential_withdrawn", condition=Q(kind="pilot", revoked_at__isnull=False)),
            models.Index(fields=["expires_at"], name="access_credential_expiry", condition=Q(expires_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.prefix}"


class Audit(models.Model):
    """One privileged act, done or refused. Rows are only ever added: a trigger refuses to change or remove them, and gives each
    its number and time, whatever the writer says; seals tell whether somebody got around it.

    No foreign keys: the row stays true when the user, the credential or the thing is gone.
    """

    class Outcome(models.TextChoices):
        DONE = "done"
        REFUSED = "refused"
        FAILED = "failed"

    at = models.DateTimeField(db_default=Now(), editable=False)
    who = models.CharField(max_length=200, help_text="Name of the user, pilot or job; `system` for operator commands.")
    kind = models.CharField(max_length=10, help_text="The kind of credential: anonymous, user, enrolment, pilot, child or job.")
    prefix = models.CharField(max_length=16, blank=True, help_text="The displayed part of the credential.")
    vo = models.CharField("VO", max_length=64, blank=True)
    act = models.CharField(max_length=100)
    object = models.CharField(max_length=300)
    outcome = models.CharField(max_length=8, choices=Outcome.choices)
    status = models.PositiveSmallIntegerField(null=True, blank=True, help_text="HTTP status of the answer, where there was one.")
    reason = models.CharField(max_length=500, blank=True)
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)
    trace_id = models.CharField(max_length=32, blank=True)

    class Meta:
        verbose_name_plural = "audit"
        indexes = [
            models.Index(fields=["-at"], name="access_audit_at"),
            models.Index(fields=["who", "-at"], name="access_audit_who"),
            models.Index(fields=["object", "-at"], name="access_audit_object"),
            models.Index(fields=["trace_id"], name="access_audit_trace", condition=~Q(trace_id="")),
        ]

    def __str__(self) -> str:
        return f"{self.who}: {self.act} {self.object}: {self.outcome}"


class AuditSeal(models.Model):
    """A batch of audit rows, sealed: what they were, and by its hash what all batches before were. Only ever added."""

    number = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField(db_default=Now(), editable=False)
    last_id = models.BigIntegerField(help_text="The batch holds the rows after those of the seal before, up to this one.")
    n_rows = models.IntegerField("rows")
    digests = models.BinaryField(help_text="For each row its number and the first half of its SHA-256.")
    hash = models.CharField(max_length=64, help_text="SHA-256 of the last seal's hash and of this batch.")

    def __str__(self) -> str:
        return f"seal {self.number} up to row {self.last_id}"
