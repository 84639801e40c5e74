"""The broker of VOs without rules of their own. Source: facts on the brokerage 4."""

from __future__ import annotations

from brokerage.filters.activity import nopilot_generic
from brokerage.filters.disk import output_space, scratch_unscaled
from brokerage.filters.sites import banned_site, no_station, nonpreassigned, processing_type, site_lists, status
from brokerage.filters.slots import cpucore, memory_uncompensated
from brokerage.filters.walltime import walltime_generic
from brokerage.rules.decision.declare import Best, BrokeragePolicy, PendingFor, policy
from brokerage.weights.queues import running_over_waiting


@policy(vo="*", activity="generic")
class Generic(BrokeragePolicy):
    """Any online queue where a job fits; the emptiest first."""

    per_share = False
    candidates = nonpreassigned
    filters = (
        site_lists,
        status,
        scratch_unscaled,
        output_space,
        walltime_generic,
        cpucore,
        memory_uncompensated,
        processing_type,
        nopilot_generic,
    )
    weights = (running_over_waiting,)
    further_filters = (banned_site, no_station)
    select, otherwise = Best("BEST_GENERIC"), PendingFor("PENDING_GENERIC")
