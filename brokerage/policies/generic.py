"""The broker of VOs without rules of their own. Source: facts on the brokerage 4."""

from __future__ import annotations

from brokerage.filters.activity import pilots_seen
from brokerage.filters.cores import enough_cores
from brokerage.filters.disk import output_space, scratch_unscaled
from brokerage.filters.memory import memory_uncompensated
from brokerage.filters.processing import processing_type
from brokerage.filters.sites import preassigned_only, site_lists
from brokerage.filters.status import online
from brokerage.filters.walltime import walltime_within
from brokerage.rules.decision.declare import Best, BrokeragePolicy, PendingFor, policy
from brokerage.weights.running import running_over_waiting


@policy(vo="*", activity="generic")
class Generic(BrokeragePolicy):
    """Any queue that is online and where a job fits; the emptiest first."""

    per_share = False
    candidates = preassigned_only
    filters = (
        site_lists,
        online,
        scratch_unscaled,
        output_space,
        walltime_within,
        enough_cores,
        memory_uncompensated,
        processing_type,
        pilots_seen,
    )
    weights = (running_over_waiting,)
    select, otherwise = Best("BEST_GENERIC"), PendingFor("PENDING_GENERIC")
