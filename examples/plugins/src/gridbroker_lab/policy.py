"""The policy: which rules of GridBroker and of our own apply, in their order. The first that fails is the reason that is told."""

from __future__ import annotations

from brokerage.plugin_api import Best, BrokeragePolicy, PendingFor, policy
from brokerage.plugin_api.standard_filters import (
    cpucore,
    memory_uncompensated,
    nonpreassigned,
    output_space,
    scratch_unscaled,
    site_lists,
    status,
    walltime_generic,
)
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
