"""Agent seal. Takes audit rows that no seal covers. Leaves seals over them, a batch each, and alerts. Next: `check_audit`."""

from __future__ import annotations

from datetime import timedelta

from broker_site.foundation import gdpconfig
from broker_site.foundation.access.alerts import look_for_alerts
from broker_site.foundation.access.models import AuditSeal
from broker_site.foundation.access.seals import seal
from broker_site.foundation.agency.run import Run, agent

PAUSE = timedelta(seconds=30)
"""Between two seals: a batch for every single row would be more seals than audit."""


@agent("seal")
def seal_audit(run: Run) -> int:
    """How many rows were sealed; of what they say, alerts are noted before."""
    hours = gdpconfig.component("alerts")
    look_for_alerts(hours["SHARE_EDITS_FROM"], hours["SHARE_EDITS_TO"])
    last = AuditSeal.objects.order_by("-number").values_list("at", flat=True).first()
    return 0 if last is not None and run.now - last < PAUSE else seal()
