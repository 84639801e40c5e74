"""The analysis job broker: tasks of users and groups. Source: seed 000, analysis job brokerage.

First the filters in the order of the document, those for persistent issues and then those for temporary ones; after them those
that only practice has (facts on the brokerage 3.3).
"""

from __future__ import annotations

from brokerage.filters.activity import pilots_seen_or_never
from brokerage.filters.analysis import (
    cloud_alike,
    for_analysis,
    good_for_the_task,
    gpu_if_wanted,
    hospital_last,
    local_quota_left,
    no_endpoint_down,
    not_overloaded,
    online_or_named,
    scratch_of_analysis,
    storages_roomy,
    user_has_room,
)
from brokerage.filters.caps import within_caps
from brokerage.filters.cores import cores_alike
from brokerage.filters.inputs import direct_access, io_within
from brokerage.filters.load import disk_io_low_for_good
from brokerage.filters.locality import files_if_only_local, input_is_local, virtual_if_wanted
from brokerage.filters.memory import memory
from brokerage.filters.shares import zero_share_unless_bound
from brokerage.filters.software import software
from brokerage.filters.walltime import a_day_unless_merging, walltime_between
from brokerage.rules.decision.declare import Best, BrokeragePolicy, PendingFor, policy
from brokerage.rules.facts.merging import as_merging
from brokerage.weights.analysis import running_over_all_queued


@policy(vo="*", activity="analysis")
class Analysis(BrokeragePolicy):
    """Where the input is and least waits; elsewhere if no queue with the input can take the task at all."""

    components = ("core", "pandaserver:prio_mgr", "jobbroker", "anal_jobbroker")
    prepare = as_merging
    throttle = (within_caps,)
    candidates = for_analysis
    filters = (
        online_or_named,
        input_is_local,
        disk_io_low_for_good,
        cores_alike,
        virtual_if_wanted,
        gpu_if_wanted,
        software,
        memory,
        scratch_of_analysis,
        storages_roomy,
        no_endpoint_down,
        walltime_between,
        pilots_seen_or_never,
        good_for_the_task,
        not_overloaded,
        user_has_room,
        zero_share_unless_bound,
        io_within,
        direct_access,
        local_quota_left,
        a_day_unless_merging,
        cloud_alike,
        hospital_last,
        files_if_only_local,
    )
    weights = (running_over_all_queued,)
    select, otherwise = Best("BEST_ANALYSIS", least="MIN_WEIGHT"), PendingFor("PENDING_ANALYSIS")
