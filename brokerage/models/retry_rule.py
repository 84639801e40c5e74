"""Retry rules: what follows from an error of a job, edited by operators (`brokerage.rules.dispatch.retry_rules`)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from brokerage.rules.dispatch.retry_rules import ACTIONS, COMPONENTS, LIMIT_RETRY


def _asked(length: int, help_text: str) -> models.CharField[str, str]:
    return models.CharField(max_length=length, blank=True, default="", db_default="", help_text=f"{help_text}; empty: any")


class RetryRule(models.Model):
    """One rule: which errors of which jobs, and what follows."""

    id = models.AutoField(primary_key=True)
    name = models.CharField(max_length=60, unique=True, help_text="as it is told on the pages of jobs")
    active = models.BooleanField(default=True, db_default=True, help_text="off: where it would hold is told, and nothing is done")
    vo = _asked(32, "virtual organization")
    component = models.CharField(
        max_length=16,
        blank=True,
        default="",
        db_default="",
        choices=list(COMPONENTS.items()),
        help_text="who says what went wrong; empty: any",
    )
    error_code = _asked(40, "error code, of the payload its exit code")
    pattern = _asked(256, "regular expression, matched from the beginning of the error message")
    architecture = _asked(256, "architecture of the task, the whole text")
    release = _asked(192, "software of the task (transUses), the whole text")
    computing_queue = _asked(60, "computing queue where it ran")
    work_queue = models.ForeignKey(
        "workqueues.WorkQueue", models.CASCADE, null=True, blank=True, related_name="+", help_text="empty: any"
    )
    expires_at = models.DateTimeField(null=True, blank=True, help_text="until when it holds; empty: without end")
    action = models.CharField(max_length=32, choices=list(ACTIONS.items()), help_text="what follows")
    max_attempt = models.SmallIntegerField(
        null=True, blank=True, help_text="tries of a file, those before included; of limited tries only"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(name="retry_rule_action_known", condition=Q(action__in=list(ACTIONS))),
            models.CheckConstraint(
                name="retry_rule_limit",
                condition=Q(action=LIMIT_RETRY, max_attempt__gte=1) | (~Q(action=LIMIT_RETRY) & Q(max_attempt__isnull=True)),
            ),
        ]

    def __str__(self) -> str:
        return self.name
