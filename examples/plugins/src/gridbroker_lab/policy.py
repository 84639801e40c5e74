"""The policy: which rules of GridBroker and of our own apply, in their order. The first that fails is the reason that is told."""

from __future__ import annotations

from brokerage.filters.cores import cpucore
from brokerage.filters.disk import output_space, scratch_unscaled
from brokerage.filters.memory import memory_uncompensated
from brokerage.filters.sites import nonpreassigned, site_lists
from brokerage.filters.status import status
from brokerage.filters.walltime import walltime_generic
from brokerage.rules.decision.declare import Best, BrokeragePolicy, PendingFor, policy
from gridbroker_lab.rules import lab_power_left, lab_quiet_enough


@policy(vo="lab", activity="production")
class LabProduction(BrokeragePolicy):
    """Any queue that is status and where a job fits; the one with most idle pledged power first, and quiet ones for people."""

    components = ("jobbroker", "lab_jobbroker")
    candidates = nonpreassigned
    filters = (
        site_lists,
        status,
        lab_quiet_enough,
        cpucore,
        memory_uncompensated,
        scratch_unscaled,
        output_space,
        walltime_generic,
    )
    weights = (lab_power_left,)
    select, otherwise = Best("LAB_BEST"), PendingFor("LAB_PENDING")
