"""Families of the production job broker: its filters and the factors of its weight."""

from __future__ import annotations

import json
from typing import Any

from broker_site.conformance.families.one_queue import asked, config_with, queue, weighed
from broker_site.conformance.registry import Answer, Given, family
from brokerage.rules.ask import Ask, Chunk
from brokerage.rules.load import effective_running, many_assigned
from brokerage.rules.network import latest, network_weight, queued_weight, throughput_weight
from brokerage.rules.software import Architecture, parse_architecture
from brokerage.rules.zero_share import Work, accepts

NOT_KNOWN = float("nan")


@family("memory", given="base ram unit cores minrss maxrss", expect="estimate_mb accepted")
def memory(given: Given) -> Answer:
    """Expected memory against both limits."""
    ask = Ask(ram_count=given["ram"], ram_unit=given["unit"], base_ram_count=given["base"])
    table = queue(corecount=given["cores"], minrss=given["minrss"], maxrss=given["maxrss"])
    verdicts, numbers = asked("memory", ask, table)
    return {"estimate_mb": numbers["need_mb"], "accepted": all(verdicts)}


@family("walltime", given="cpu_time n_events cores core_power eff_pct base maxtime", expect="walltime_s accepted")
def walltime(given: Given) -> Answer:
    """Estimated walltime against maxtime."""
    ask = Ask(
        cpu_time=given["cpu_time"],
        cpu_efficiency=given["eff_pct"],
        base_walltime=given["base"],
        chunk=Chunk(n_events=given["n_events"]),
    )
    table = queue(corecount=given["cores"], corepower=given["core_power"], maxtime=given["maxtime"])
    verdicts, numbers = asked("walltime_below", ask, table)
    return {"walltime_s": numbers["walltime_s"], "accepted": all(verdicts)}


@family("walltime", given="is_scout_or_merge maxtime_h", expect="accepted")
def walltime_of_scouts(given: Given) -> Answer:
    """A day for scouts and merging."""
    ask = Ask(scout=given["is_scout_or_merge"], merge=given["is_scout_or_merge"], cpu_time=1)
    return {"accepted": all(asked("a_day_for_the_unknown", ask, queue(maxtime=given["maxtime_h"] * 3600))[0])}


@family("transferring", given="transferring running [limit]", expect="accepted")
def transferring(given: Given) -> Answer:
    """Jobs that transfer their output."""
    table = queue(transferring=given["transferring"], running=given["running"], transferringlimit=given.get("limit"))
    return {"accepted": all(asked("transferring_few", Ask(), table)[0])}


@family("zero_share", given="policy processing_group", expect="accepted")
def zero_share(given: Given) -> Answer:
    """fairsharepolicy."""
    return {"accepted": accepts(given["policy"], Work(given["processing_group"]))}


@family("ip_connectivity", given="[queue] [task]", expect="accepted")
def ip_connectivity(given: Given) -> Answer:
    """Connectivity and stack of the nodes."""
    ask = Ask(ip_connectivity=given.get("task"))
    return {"accepted": all(asked("connected", ask, queue(wnconnectivity=given.get("queue")))[0])}


@family("io_cut", given="io_intensity missing_gb missing_files", expect="accepted")
def io_cut(given: Given) -> Answer:
    """Missing input of a task with much I/O."""
    ask = Ask(io_intensity=given["io_intensity"], chunk=Chunk(gb=given["missing_gb"]))
    return {"accepted": all(asked("input_near", ask, queue(missing_files=given["missing_files"]))[0])}


@family("hardware", given="architecture", expect="sw_platform base_platform cpu gpu")
def architecture(given: Given) -> Answer:
    """The grammar."""
    parts: Architecture = parse_architecture(given["architecture"])
    return {"sw_platform": parts.sw_platform, "base_platform": parts.base_platform, "cpu": parts.cpu, "gpu": parts.gpu}


@family("hardware", given="task_architecture queue_architectures", expect="accepted")
def hardware(given: Given) -> Answer:
    """CPU and GPU; the release is not in question."""
    table = queue(any_release=False, software=json.dumps({"architectures": given["queue_architectures"]}))
    return {"accepted": asked("software", Ask(architecture=given["task_architecture"]), table)[0][-1]}


@family("container", given="container only_tags queue [all_tags]", expect="accepted")
def container(given: Given) -> Answer:
    """Fat containers; `all_tags` say where the container is."""
    name = given["container"]
    sources = [source for tag in given.get("all_tags", ()) if tag["container_name"] == name for source in tag["sources"]]
    ask = Ask(container_name=name, only_tags_for_fc=given["only_tags"], container_sources=tuple(sources))
    return {"accepted": all(asked("software", ask, _publishing(given["queue"]))[0])}


@family("release", given="nightly platform project version queue", expect="accepted")
def release(given: Given) -> Answer:
    """Releases, caches and nightlies."""
    ask = Ask(architecture=given["platform"], release=f"{given['project']}-{given['version']}", nightly=given["nightly"])
    return {"accepted": all(asked("software", ask, _publishing(given["queue"]))[0])}


def _publishing(document: Any) -> Any:
    return queue(any_release=False, software=json.dumps(document))


@family("running", given="real n_batch starting [num_slots]", expect="running")
def running(given: Given) -> Answer:
    """Jobs that count as running."""
    return {"running": int(effective_running(given["real"], given["n_batch"], given.get("num_slots", -1), given["starting"]))}


@family("many_assigned", given="assigned activated", expect="manyAssigned")
def manyassigned(given: Given) -> Answer:
    """The penalty for assigned jobs."""
    return {"manyAssigned": float(many_assigned(given["assigned"], given["activated"]))}


@family(
    "production_weight",
    given="running activated assigned starting defined all_local [total_gb] [avail_gb] [missing] [network]",
    expect="weight",
)
def production_weight(given: Given) -> Answer:
    """Running over queued, data availability and the network factor that is given."""
    # A case without input data says only whether it is all there.
    missing = given.get("missing", 0 if given["all_local"] else 1)
    table = queue(**_counts(given), available_gb=given.get("avail_gb"), missing_files=missing)
    ask = Ask(chunk=Chunk(gb=given.get("total_gb", 0.0)))
    factors = weighed("running_over_queued", ask, table) * weighed("data_availability", ask, table)
    return {"weight": factors * given.get("network", 1.0)}


@family("final_filters", given="running activated starting defined assigned local_input", expect="pass_first pass_second")
def final_filters(given: Given) -> Answer:
    """The two late cuts."""
    table = queue(**_counts(given), missing_files=0 if given["local_input"] else 1)
    first, second = asked("queue_short", Ask(), table)[0]
    return {"pass_first": first, "pass_second": second}


def _counts(given: Given) -> dict[str, Any]:
    return {state: given[state] for state in ("running", "activated", "assigned", "starting", "defined")}


@family("network_weight", given="queued [mbps] [closeness] [cap]", expect="queuedWeight throughputWeight networkWeight")
def network(given: Given) -> Answer:
    """The two parts and the whole."""
    config = config_with(given, {"cap": "NQUEUED_SAT_CAP"})
    queued = queued_weight(given["queued"], config["NQUEUED_SAT_CAP"])
    throughput = throughput_weight(given.get("mbps", NOT_KNOWN), given.get("closeness", NOT_KNOWN))
    whole = network_weight(queued, throughput, config["NW_QUEUE_IMPORTANCE"])
    return {"queuedWeight": float(queued), "throughputWeight": float(throughput), "networkWeight": float(whole)}


@family("network_weight", given="network", expect="accepted")
def network_threshold(given: Given) -> Answer:
    """The threshold for urgent tasks, by its two keys."""
    config = config_with({}, {})
    return {"accepted": given["network"] >= config["NW_THRESHOLD"] * config["NW_WEIGHT_MULTIPLIER"]}


@family("network_weight", given="[h1] [d1] [w1]", expect="mbps")
def throughput(given: Given) -> Answer:
    """The window that is used."""
    return {"mbps": latest(given.get("h1"), given.get("d1"), given.get("w1"))}


@family("t1_weight", given="t1weight io_intensity priority cloud_weight", expect="weight nucleus_only")
def t1_weight(given: Given) -> Answer:
    """The factor at the nucleus, and whether others are skipped."""
    ask = Ask(t1_weight=given["t1weight"], io_intensity=given["io_intensity"], priority=given["priority"], nucleus="N")
    config = config_with(given, {"cloud_weight": "T1_CLOUD_WEIGHT"})
    elsewhere = asked("at_nucleus_if_wished", ask, queue())[0][0]
    return {"weight": weighed("t1", ask, queue(at_nucleus=True), config), "nucleus_only": not elsewhere}
