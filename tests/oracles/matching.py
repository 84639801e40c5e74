"""Whether a pilot can run a job of a task queue, one condition after the other, with the one that forbids it.

`brokerage.rules.dispatch.matching.fitting` is quicker and says nothing; the tests hold both to the same.
"""

from __future__ import annotations

from broker_site.foundation.kernel.verdict import Skip
from brokerage.rules.dispatch.requirement import Requirement, Resource


def suits(requirement: Requirement, pilot: Resource) -> Skip | None:
    """None where a job of the requirement can run in the pilot, else the first thing that forbids it, with the numbers."""
    if requirement.queue != pilot.queue:
        return Skip("-queue", "persistent", f"brokered to {requirement.queue}, the pilot runs at {pilot.queue}")
    if pilot.vo and requirement.vo != pilot.vo:
        return Skip("-vo", "persistent", f"work of {requirement.vo}, the pilot is of {pilot.vo}")
    for label, unit, need, has in (
        ("cores", "cores", requirement.cores, pilot.cores),
        ("memory", "MB of memory", requirement.memory_mb, pilot.memory_mb),
        ("disk", "MB of disk", requirement.disk_mb, pilot.disk_mb),
        ("walltime", "s of walltime", requirement.walltime_s, pilot.walltime_s),
    ):
        if 0 < has < need:
            return Skip(f"-{label}", "temporary", f"a job needs {need} {unit}, the pilot has {has}", {"need": need, "has": has})
    return None
