"""Families of the production job broker: its filters and the factors of its weight."""

from __future__ import annotations

import json
from typing import Any

from broker_site.roof.conformance.families.one_queue import (
    chunk,
    config_with,
    defaults,
    factor_of,
    queue,
    task,
    times,
    verdicts_of,
)
from broker_site.roof.conformance.registry import Answer, Given, family
from brokerage.rules.facts.ask import Ask
from brokerage.rules.facts.job_counts import effective_running, many_assigned
from brokerage.rules.facts.network import fast_enough, latest, network_weight, queued_weight, throughput_weight
from brokerage.rules.facts.snapshot import JOBS, Queues
from brokerage.rules.facts.software import Architecture, container_sources, parse_architecture
from brokerage.rules.grid.fair_share import Work, accepts

NOT_KNOWN = float("nan")
NO_SLOTS = -1
"""No number of slots is declared."""


@family("memory", given="base ram unit cores minrss maxrss", expect="estimate_mb accepted")
def memory(given: Given) -> Answer:
    ask = task(ram_count=given["ram"], ram_unit=given["unit"], base_ram_count=given["base"])
    table = queue(corecount=given["cores"], minrss=given["minrss"], maxrss=given["maxrss"])
    verdicts, numbers = verdicts_of("memory", ask, table)
    return {"estimate_mb": numbers["need_mb"], "accepted": all(verdicts)}


@family("walltime", given="cpu_time n_events cores core_power eff_pct base maxtime", expect="walltime_s accepted")
def walltime(given: Given) -> Answer:
    ask = task(
        cpu_time=given["cpu_time"],
        cpu_efficiency=given["eff_pct"],
        base_walltime=given["base"],
        chunk=chunk(n_events=given["n_events"]),
    )
    table = queue(corecount=given["cores"], corepower=given["core_power"], maxtime=given["maxtime"])
    verdicts, numbers = verdicts_of("shortwalltime", ask, table)
    return {"walltime_s": numbers["walltime_s"], "accepted": all(verdicts)}


@family("walltime", given="is_scout_or_merge maxtime_h", expect="accepted")
def walltime_of_scouts(given: Given) -> Answer:
    """A day for scouts and merging."""
    ask = task(scout=given["is_scout_or_merge"], merge=given["is_scout_or_merge"], cpu_time=1)
    return {"accepted": all(verdicts_of("maxtime_for_scouts", ask, queue(maxtime=times(given["maxtime_h"], 3600.0)))[0])}


@family("transferring", given="transferring running [limit]", expect="accepted")
def transferring(given: Given) -> Answer:
    table = queue(transferring=given["transferring"], running=given["running"], transferringlimit=given["limit"])
    return {"accepted": all(verdicts_of("transferring", Ask(), table)[0])}


@family("zero_share", given="policy processing_group", expect="accepted")
def zero_share(given: Given) -> Answer:
    return {"accepted": accepts(given["policy"] or "", Work(given["processing_group"] or ""))}


@family("ip_connectivity", given="[queue] [task]", expect="accepted")
def ip_connectivity(given: Given) -> Answer:
    """Connectivity and stack of the nodes."""
    ask = task(ip_connectivity=given["task"])
    return {"accepted": all(verdicts_of("connectivity", ask, queue(wnconnectivity=given["queue"]))[0])}


@family("io_cut", given="io_intensity missing_gb missing_files", expect="accepted")
def io_cut(given: Given) -> Answer:
    """Missing input of a task with much I/O."""
    ask = task(io_intensity=given["io_intensity"], chunk=chunk(gb=given["missing_gb"]))
    return {"accepted": all(verdicts_of("io_intensity", ask, queue(missing_files=given["missing_files"]))[0])}


@family("hardware", given="architecture", expect="sw_platform base_platform cpu gpu")
def architecture(given: Given) -> Answer:
    parts: Architecture = parse_architecture(given["architecture"])
    return {"sw_platform": parts.sw_platform, "base_platform": parts.base_platform, "cpu": parts.cpu, "gpu": parts.gpu}


@family("hardware", given="task_architecture queue_architectures", expect="accepted")
def hardware(given: Given) -> Answer:
    """CPU and GPU; the release is not in question."""
    table = queue(any_release=False, software=json.dumps({"architectures": given["queue_architectures"]}))
    return {"accepted": verdicts_of("software", task(architecture=given["task_architecture"]), table)[0][-1]}


@family("container", given="container only_tags queue [all_tags]", expect="accepted")
def container(given: Given) -> Answer:
    """Fat containers; `all_tags` say where the container is."""
    sources = container_sources(given["all_tags"] or ()).get(given["container"], ())
    ask = task(container_name=given["container"], only_tags_for_fc=given["only_tags"], container_sources=sources)
    return {"accepted": all(verdicts_of("software", ask, _publishing(given["queue"]))[0])}


@family("release", given="nightly platform project version queue", expect="accepted")
def release(given: Given) -> Answer:
    names = [name for name in (given["project"], given["version"]) if name is not None]
    ask = task(architecture=given["platform"], release="-".join(names) or None, nightly=given["nightly"])
    return {"accepted": all(verdicts_of("software", ask, _publishing(given["queue"]))[0])}


def _publishing(document: Any) -> Any:
    return queue(any_release=False, software=json.dumps(document))


@family("running", given="real n_batch starting [num_slots]", expect="running")
def running(given: Given) -> Answer:
    """Jobs that count as running."""
    slots = NO_SLOTS if given["num_slots"] is None else given["num_slots"]
    return {"running": int(effective_running(given["real"] or 0, given["n_batch"] or 0, slots, given["starting"] or 0))}


@family("many_assigned", given="assigned activated", expect="manyAssigned")
def manyassigned(given: Given) -> Answer:
    return {"manyAssigned": float(many_assigned(given["assigned"] or 0, given["activated"] or 0))}


@family(
    "production_weight",
    given="running activated assigned starting defined all_local [total_gb] [avail_gb] [missing] [network]",
    expect="weight",
)
def production_weight(given: Given) -> Answer:
    """Running over queued, data availability and the network factor that is given."""
    ask = task(chunk=chunk(gb=given["total_gb"]))
    running_over_queued = factor_of("running_over_queued", ask, _queue_of_case(given, given["all_local"]))
    with_input = queue(available_gb=given["avail_gb"], missing_files=given["missing"])
    return {"weight": running_over_queued * factor_of("data_availability", ask, with_input) * given.get("network", 1.0)}


@family("final_filters", given="running activated starting defined assigned local_input", expect="pass_first pass_second")
def final_filters(given: Given) -> Answer:
    first, second = verdicts_of("queue_caps", Ask(), _queue_of_case(given, given["local_input"]))[0]
    return {"pass_first": first, "pass_second": second}


def _queue_of_case(given: Given, local: bool | None) -> Queues:
    """The queue with its jobs; a case says of the input only whether it is all there."""
    jobs = {state: given[state] for state in JOBS}
    return queue(**jobs, missing_files=0 if local else 1)


@family("network_weight", given="queued [mbps] [closeness] [cap]", expect="queuedWeight throughputWeight networkWeight")
def network(given: Given) -> Answer:
    config = config_with(given, {"cap": "NQUEUED_SAT_CAP"})
    queued = queued_weight(given["queued"] or 0, config["NQUEUED_SAT_CAP"])
    throughput = throughput_weight(given.get("mbps", NOT_KNOWN), given.get("closeness", NOT_KNOWN))
    whole = network_weight(queued, throughput, config["NW_QUEUE_IMPORTANCE"])
    return {"queuedWeight": float(queued), "throughputWeight": float(throughput), "networkWeight": float(whole)}


@family("network_weight", given="network", expect="accepted")
def network_threshold(given: Given) -> Answer:
    """The threshold for urgent tasks, by its two keys."""
    return {"accepted": bool(fast_enough(given["network"], defaults()))}


@family("network_weight", given="[h1] [d1] [w1]", expect="mbps")
def throughput(given: Given) -> Answer:
    """The window that is used."""
    return {"mbps": latest(given["h1"], given["d1"], given["w1"])}


@family("t1_weight", given="t1weight io_intensity priority cloud_weight", expect="weight nucleus_only")
def t1_weight(given: Given) -> Answer:
    """The factor at the nucleus, and whether others are skipped."""
    ask = task(t1_weight=given["t1weight"], io_intensity=given["io_intensity"], priority=given["priority"], nucleus="N")
    config = config_with(given, {"cloud_weight": "T1_CLOUD_WEIGHT"})
    elsewhere = verdicts_of("t1weight", ask, queue())[0][0]
    return {"weight": factor_of("t1", ask, queue(at_nucleus=True), config), "nucleus_only": not elsewhere}
