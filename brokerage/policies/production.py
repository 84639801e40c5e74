"""The production job broker: one task, one chunk of its input, its nucleus known. Source: seed 000, production job brokerage.

First the filters in the order of the document, then those that only practice has (facts on the brokerage 2.3).
"""

from __future__ import annotations

from brokerage.filters.activity import jobs_begin, pilots_seen
from brokerage.filters.connectivity import connected
from brokerage.filters.cores import cores_alike
from brokerage.filters.disk import scratch, space_over
from brokerage.filters.inputs import direct_access, input_near, io_within, local_if_only_local
from brokerage.filters.links import fast_enough_if_urgent, link_not_full, link_open, nucleus_not_full, nucleus_receives
from brokerage.filters.load import disk_io_low, pledged_first, pledged_if_high, queue_short, transferring_few
from brokerage.filters.memory import memory
from brokerage.filters.nucleus_only import at_nucleus_if_high, at_nucleus_if_wished
from brokerage.filters.shares import zero_share
from brokerage.filters.sites import all_but_test
from brokerage.filters.software import software
from brokerage.filters.status import online
from brokerage.filters.storage import endpoints_up
from brokerage.filters.walltime import a_day_for_the_unknown, walltime_above, walltime_below
from brokerage.rules.decision.declare import Best, BrokeragePolicy, PendingFor, policy
from brokerage.rules.facts.merging import as_merging
from brokerage.weights.production import data_availability, network, running_over_queued, t1


@policy(vo="*", activity="production")
class Production(BrokeragePolicy):
    """Where running jobs make room soon, input is near and output travels well."""

    components = ("jobbroker", "core")
    prepare = as_merging
    candidates = all_but_test
    filters = (
        online,
        link_open,
        link_not_full,
        nucleus_not_full,
        at_nucleus_if_high,
        jobs_begin,
        zero_share,
        input_near,
        disk_io_low,
        cores_alike,
        software,
        memory,
        direct_access,
        scratch,
        space_over,
        endpoints_up,
        a_day_for_the_unknown,
        walltime_below,
        connected,
        transferring_few,
        at_nucleus_if_wished,
        pilots_seen,
        fast_enough_if_urgent,
        nucleus_receives,
        pledged_if_high,
        walltime_above,
        pledged_first,
        io_within,
        local_if_only_local,
    )
    weights = (running_over_queued, data_availability, t1, network)
    late_filters = (queue_short,)
    select, otherwise = Best("BEST_PRODUCTION", least="MIN_WEIGHT"), PendingFor("PENDING_PRODUCTION")
