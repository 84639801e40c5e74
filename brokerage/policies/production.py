"""The production job broker: one task, one chunk of its input, its nucleus known. Source: seed 000, production job brokerage.

The filters in the order of the document, its late cuts, then those that only practice has (facts on the brokerage 2.3).
"""

from __future__ import annotations

from brokerage.filters.activity import inactive, nopilot
from brokerage.filters.disk import scratch, storage_blacklists, storage_space
from brokerage.filters.inputs import io_intensity, max_io_intensity, non_local, remoteio
from brokerage.filters.links import dest_blacklisted, link_backlog, link_unusable, links_full, low_network_weight
from brokerage.filters.load import disk_io, non_pledged, opportunistic, queue_caps, transferring
from brokerage.filters.shares import zero_share
from brokerage.filters.sites import banned_site, no_station, not_nucleus, production_candidates, site_lists, status, t1weight
from brokerage.filters.slots import core_count, memory
from brokerage.filters.software import connectivity, software
from brokerage.filters.walltime import longwalltime, maxtime_for_scouts, shortwalltime
from brokerage.rules.decision.declare import Best, BrokeragePolicy, PendingFor, policy
from brokerage.rules.facts.ask import as_merging
from brokerage.weights.queues import data_availability, network, running_over_queued, t1


@policy(vo="*", activity="production")
class Production(BrokeragePolicy):
    """Where running jobs make room soon, input is near and output travels well."""

    components = ("jobbroker", "core")
    prepare = as_merging
    candidates = production_candidates
    filters = (
        status,
        link_unusable,
        link_backlog,
        links_full,
        not_nucleus,
        inactive,
        zero_share,
        io_intensity,
        disk_io,
        core_count,
        software,
        memory,
        remoteio,
        scratch,
        storage_space,
        storage_blacklists,
        maxtime_for_scouts,
        shortwalltime,
        connectivity,
        transferring,
        t1weight,
        nopilot,
        low_network_weight,
    )
    weights = (running_over_queued, data_availability, t1, network)
    late_filters = (queue_caps,)
    further_filters = (
        dest_blacklisted,
        opportunistic,
        longwalltime,
        non_pledged,
        max_io_intensity,
        non_local,
        site_lists,
        banned_site,
        no_station,
    )
    select, otherwise = Best("BEST_PRODUCTION", least="MIN_WEIGHT"), PendingFor("PENDING_PRODUCTION")
