"""GridBroker's own filters, for policies of other packages; `manage.py criteria` tells what each asks."""

from brokerage.filters.activity import inactive, nopilot, nopilot_analysis, nopilot_generic
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
from brokerage.filters.disk import output_space, scratch, scratch_unscaled, storage_blacklists, storage_space
from brokerage.filters.inputs import io_intensity, max_io_intensity, non_local, remoteio
from brokerage.filters.links import dest_blacklisted, link_backlog, link_unusable, links_full, low_network_weight
from brokerage.filters.load import disk_io, disk_io_analysis, non_pledged, opportunistic, queue_caps, transferring
from brokerage.filters.locality import file_unavailable, locality, virtual_placement
from brokerage.filters.nuclei import (
    nonpreassigned_nucleus,
    nucleus_input,
    nucleus_job,
    nucleus_outputs,
    nucleus_space,
    nucleus_status,
    transfer_backlog,
)
from brokerage.filters.shares import zero_share, zero_share_analysis
from brokerage.filters.sites import (
    banned_site,
    no_station,
    nonpreassigned,
    not_nucleus,
    processing_type,
    production_candidates,
    site_lists,
    status,
    t1weight,
)
from brokerage.filters.slots import core_count, cpucore, memory, memory_uncompensated
from brokerage.filters.software import connectivity, software
from brokerage.filters.walltime import (
    longwalltime,
    maxtime_for_scouts,
    maxtime_for_scouts_analysis,
    shortwalltime,
    walltime_analysis,
    walltime_generic,
)
