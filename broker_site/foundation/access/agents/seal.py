"""Agent seal. Takes audit rows that no seal covers. Leaves seals over them, a batch each. Next: `manage.py check_audit`."""

from __future__ import annotations

from datetime import timedelta

from broker_site.foundation.access.models import AuditSeal
from broker_site.foundation.access.seals import seal
from broker_site.foundation.agency.run import Run, agent

PAUSE = timedelta(seconds=30)
"""Between two seals: a batch for every single row would be more seals than audit."""


@agent("seal")
def seal_audit(run: Run) -> int:
    """How many rows were sealed."""
    last = AuditSeal.objects.order_by("-number").values_list("at", flat=True).first()
    return 0 if last is not None and run.now - last < PAUSE else seal()
