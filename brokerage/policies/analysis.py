"""The analysis job broker: tasks of users and groups. Source: seed 000, analysis job brokerage.

First the filters in the order of the document, those for persistent issues and then those for temporary ones; after them those
that only practice has (facts on the brokerage 3.3).
"""

from __future__ import annotations

from brokerage.filters.activity import nopilot_analysis
from brokerage.filters.analysis import (
    analysis_candidates,
    blacklist,
    closed_and_badsite,
    cloud_mismatch,
    gpu,
    hospital,
    local_quota,
    overload,
    scratch_analysis,
    status_analysis,
    storage_space_analysis,
    user_queue_limit,
)
from brokerage.filters.caps import user_caps
from brokerage.filters.inputs import max_io_intensity, remoteio
from brokerage.filters.load import disk_io_analysis
from brokerage.filters.locality import file_unavailable, locality, virtual_placement
from brokerage.filters.shares import zero_share_analysis
from brokerage.filters.sites import banned_site, no_station
from brokerage.filters.slots import core_count, memory
from brokerage.filters.software import software
from brokerage.filters.walltime import maxtime_for_scouts_analysis, walltime_analysis
from brokerage.rules.decision.declare import Best, BrokeragePolicy, PendingFor, policy
from brokerage.rules.facts.ask import as_merging
from brokerage.weights.queues import running_over_all_queued


@policy(vo="*", activity="analysis")
class Analysis(BrokeragePolicy):
    """Where the input is and least waits; elsewhere if no queue with the input can take the task at all."""

    components = ("core", "pandaserver:prio_mgr", "jobbroker", "anal_jobbroker")
    prepare = as_merging
    throttle = (user_caps,)
    candidates = analysis_candidates
    filters = (
        status_analysis,
        locality,
        disk_io_analysis,
        core_count,
        virtual_placement,
        gpu,
        software,
        memory,
        scratch_analysis,
        storage_space_analysis,
        blacklist,
        walltime_analysis,
        nopilot_analysis,
        closed_and_badsite,
        overload,
        user_queue_limit,
        zero_share_analysis,
        max_io_intensity,
        remoteio,
        local_quota,
        maxtime_for_scouts_analysis,
        cloud_mismatch,
        hospital,
        file_unavailable,
    )
    weights = (running_over_all_queued,)
    further_filters = (banned_site, no_station)
    select, otherwise = Best("BEST_ANALYSIS", least="MIN_WEIGHT"), PendingFor("PENDING_ANALYSIS")
