"""What the analysis broker asks in its own way: who takes part, storage, and what has gone wrong at a queue lately."""

from __future__ import annotations

import numpy as np

from brokerage.rules.decision.declare import Criterion, Numbers, Relaxation, Verdicts, filter, filters
from brokerage.rules.facts.ask import Ask, Config
from brokerage.rules.facts.columns import Flags
from brokerage.rules.facts.needs import scaled_need_mb
from brokerage.rules.facts.overload import OVERLOAD_KEYS, USER_LIMIT_KEYS, overloaded, user_limit
from brokerage.rules.facts.queue_names import AUTO, included_names, named, names_in, near, site_text
from brokerage.rules.facts.snapshot import Queues
from brokerage.rules.facts.software import Platform, parse_architecture

ANY_CLOUD = ("", "WORLD", "any")


@filters(
    Criterion("type", "it is for {type}, not for analysis"),
    Criterion("excluded", "the task excludes it: {excluded}"),
    Criterion("notincluded", "the task allows only {included}"),
    Criterion("nonpreassigned", "the jobs run only at {site}", chosen=True),
    keys=("MERGE_PREASSIGNMENT",),
)
def analysis_candidates(ask: Ask, queues: Queues, _config: Config) -> tuple[Verdicts, Numbers]:
    """Queues for analysis, without those that the task excludes, and just those that it includes or names, `*` for any text.

    A name that is no queue may be that of a storage. AUTO among the included: others where none of them is left.
    Source: seed 000, analysis; facts on the brokerage 3.2, 3.3.
    """
    site = ask.chunk.site or ask.site or ""
    included = included_names(ask)
    numbers = {"type": queues.type, "excluded": ", ".join(ask.excluded_sites), "included": ", ".join(included), "site": site}
    outside = ~named(queues, ask.excluded_sites) if ask.excluded_sites else True
    inside = named(queues, included) if included else True
    place: Flags | bool = True
    if ask.chunk.site:
        place = near(queues, names_in(ask.chunk.site))
    elif ask.site:
        place = named(queues, names_in(site))
        place = place if place.any() else np.isin(queues.storage, names_in(site))
        numbers["site"] = site_text(site, place)
    strict = (queues.for_analysis, outside, inside, place)
    others = Relaxation(strict, (lambda: (queues.for_analysis, outside, True, place),))
    return others if AUTO in ask.included_sites else strict, numbers


@filter("status", "its status is {status}, not online", returns=True)
def status_analysis(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """The status is online, unless the task names or includes the queue; AUTO includes none. Source: seed 000, analysis."""
    numbers = {"status": queues.status}
    if ask.preassigned:
        return True, numbers
    included = included_names(ask)
    return queues.online | named(queues, included) if included else queues.online, numbers


@filter("gpu", "its slots are for tasks that want a GPU, and {platform} is not there")
def gpu(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """Queues with `gpu` in catchall only where they publish the platform of the task. Source: seed 000, analysis (obsolete)."""
    platform = Platform.of(parse_architecture(ask.architecture).sw_platform or "")
    numbers = {"platform": platform.text or "no platform"}
    if not queues.gpu.any():
        return True, numbers
    return ~queues.gpu | queues.published.resolving(platform), numbers


@filter("disk", "a job needs {need_mb:.0f} MB of scratch disk, a core's part is {limit_mb:.0f} MB", gap=("need_mb", "limit_mb"))
def scratch_analysis(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags, Numbers]:
    """Input + the scaled output + work is less than maxwdir / cores, without floor; maxwdir 0 = no limit.

    Input that is read directly takes no room. nGBPerJob raises the need, merging takes twice the input.
    Source: seed 000, analysis; facts on the brokerage 3.3.
    """
    need = np.full(len(queues), 2000.0 * ask.chunk.largest_gb) if ask.merge else scaled_need_mb(ask, queues, 0.0)
    if ask.n_gb_per_job:
        need = np.maximum(need, 1000.0 * ask.n_gb_per_job)
    return queues.scratch_per_core > need, {"need_mb": need, "limit_mb": queues.scratch_per_core}


@filters(
    Criterion(
        "disk",
        "its output storage has {space_gb:.0f} GB free, more than {output_gb:.0f} GB are wanted",
        gap=("output_gb", "space_gb"),
        returns=True,
    ),
    Criterion(
        "disk",
        "its input storage has {inner_gb:.0f} GB free, more than {input_gb:.0f} GB are wanted",
        gap=("input_gb", "inner_gb"),
        returns=True,
    ),
    keys=("STORAGE_MIN_FREE_SIZE_OUTPUT", "STORAGE_MIN_FREE_SIZE"),
)
def storage_space_analysis(_ask: Ask, queues: Queues, config: Config) -> tuple[tuple[Flags, Flags], Numbers]:
    """The output storage has room, none published is none; where input must move the input storage too, if it is another.

    Source: seed 000, analysis; facts on the brokerage 3.3.
    """
    numbers = {
        "space_gb": queues.known_space_gb,
        "output_gb": config["STORAGE_MIN_FREE_SIZE_OUTPUT"],
        "inner_gb": queues.input_space_gb,
        "input_gb": config["STORAGE_MIN_FREE_SIZE"],
    }
    takes_input = queues.local | ~(queues.input_space_gb <= config["STORAGE_MIN_FREE_SIZE"])
    return (queues.known_space_gb > config["STORAGE_MIN_FREE_SIZE_OUTPUT"], takes_input), numbers


@filter("blacklist", "a storage endpoint that its jobs need is out of service", returns=True)
def blacklist(_ask: Ask, queues: Queues, _config: Config) -> tuple[Flags, Numbers]:
    """No endpoint is blacklisted for any access, and the input can be had. Source: seed 000, analysis; facts 3.3."""
    return queues.all_endpoints_up & queues.source_ok, {}


@filters(
    Criterion("closed", "{closed} jobs of the task were closed there lately", "temporary", opens=True),
    Criterion(
        "badsite", "{bad} jobs of the task failed or were closed there, fewer than {most} may", "temporary", ("bad", "most")
    ),
    keys=("TW_DONE_JOB_STAT", "MIN_BAD_JOBS_TO_SKIP_PQ"),
)
def closed_and_badsite(ask: Ask, queues: Queues, config: Config) -> tuple[tuple[Flags | bool, Flags], Numbers]:
    """No job of the task was closed lately, and fewer failed or were closed than twice those that finished, or a few.

    -closed not for merging, nor where the task names its one queue. Source: seed 000, analysis; decision B10.
    """
    bad = queues.task_failed + queues.task_closed
    most = np.maximum(2 * queues.task_finished, config["MIN_BAD_JOBS_TO_SKIP_PQ"])
    closed = True if ask.merge or ask.bound_to_one else queues.task_closed == 0
    return (closed, bad < most), {"closed": queues.task_closed, "bad": bad, "most": most}


@filters(Criterion("overloaded", "{queued} jobs wait and {running} run", "temporary"), keys=OVERLOAD_KEYS)
def overload(ask: Ask, queues: Queues, config: Config) -> tuple[Verdicts, Numbers]:
    """Not more jobs wait than twice those that run, 20 at least; not for merging. Source: seed 000, analysis; decision A2.

    By the option OVERLOAD_BY_RATIO queues of the usual kind stay where all are overloaded.
    """
    numbers = {"queued": queues.queued_in_all_states, "running": queues.busy}
    if ask.merge:
        return (True,), numbers
    light = ~overloaded(queues, config)
    usual = Relaxation((light,), (lambda: (light | ~queues.virtual,),))
    return usual if config["OVERLOAD_BY_RATIO"] else (light,), numbers


@filter(
    "user_limit",
    "{user_queued} jobs of the user wait there, {limit:.0f} at most",
    kind="temporary",
    gap=("user_queued", "limit"),
    keys=USER_LIMIT_KEYS,
)
def user_queue_limit(ask: Ask, queues: Queues, config: Config) -> tuple[Flags | bool, Numbers]:
    """The user has not too many jobs waiting at a queue where much waits; not for merging. Source: seed 000; facts 3.4."""
    limit = user_limit(
        queues.queued_in_all_states, queues.running, queues.user_running, queues.n_users, queues.starts_per_hour, config
    )
    numbers = {"user_queued": queues.user_queued, "limit": limit}
    return True if ask.merge else queues.user_queued <= limit, numbers


@filter("local_quota", "the user's quota at {storage} is used up", returns=True)
def local_quota(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """The output storage is none where the quota of the user is used up. Source: facts on the brokerage 3.3."""
    full = ask.usage.full_storages
    return ~np.isin(queues.storage, full) if full else True, {"storage": queues.storage}


@filter("cloudmismatch", "it belongs to {cloud}, the task to {wanted}")
def cloud_mismatch(ask: Ask, queues: Queues, _config: Config) -> tuple[Flags | bool, Numbers]:
    """The queue is of the cloud that the task names, where both are of one. Source: facts on the brokerage 3.3."""
    wanted = ask.cloud or ""
    numbers = {"cloud": queues.cloud, "wanted": wanted}
    return True if wanted in ANY_CLOUD else (queues.cloud == wanted) | (queues.cloud == ""), numbers


@filters(Criterion("hospital", "it is for jobs that failed elsewhere, and others are left", returns=True))
def hospital(_ask: Ask, queues: Queues, _config: Config) -> tuple[Verdicts, Numbers]:
    """A hospital queue only where no other is left. Source: facts on the brokerage 3.3."""
    return Relaxation((~queues.is_hospital,), (lambda: (True,),)) if queues.is_hospital.any() else (True,), {}
