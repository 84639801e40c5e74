"""Which submitters there are, by the names that the attribute `submission` of computing queues has."""

from __future__ import annotations

from broker_site.foundation.kernel.registry import Registry
from brokerage.submitters.local import Local
from brokerage.submitters.port import Submitter

SUBMITTERS: Registry[Submitter] = Registry("submitter")


def declare_submitter(submitter: Submitter) -> None:
    """Make a submitter known by its name."""
    SUBMITTERS.add(submitter.name, submitter)


declare_submitter(Local())
