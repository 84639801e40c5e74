"""Makes `world.json`, a grid of invented places that uses every attribute of the grid document.

    python examples/grids/make_world.py [FILE]

The same file every time: numbers are drawn with a fixed seed. What is in it, and what for, stands beside each part below; its
test holds that nothing is missing. Only the standard library.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

SEED = 20260504
NOW = "2026-05-04T08:00:00Z"
"""Time of the document. Links that say when they were measured are of about then, so a system of today knows only closeness of
them; those without a time always count as fresh."""

FIRST = (
    *("AMBER", "BRACK", "CINDER", "DUN", "ELDER", "FERN", "GALE"),
    *("HOLLOW", "IRON", "JUNIPER", "KESTREL", "LARCH", "MIST", "NETTLE"),
)
SECOND = ("FELL", "MERE", "WICK")
SITES = tuple(first + second for second in SECOND for first in FIRST)
CLOUDS = ("NORTHLAND", "EASTLAND", "SOUTHLAND", "WESTLAND")
NUCLEI = SITES[::4]
OVERLOADED = (3, 8)
"""Nuclei to which too many files are on their way, by their place."""

CLOSED = SITES[-1]
"""A site that is not in use."""

PLATFORM, OTHER_PLATFORM = "x86_64-el9-gcc13-opt", "aarch64-el9-gcc13-opt"

Entry = dict[str, Any]

SPECIAL: tuple[tuple[str, Entry], ...] = (
    ("HIMEM", {"corecount": 8, "maxrss": 64000, "minrss": 24000, "jobseed": "std"}),
    ("GPU", {"corecount": 4, "releases": ["AUTO"], "catchall": "gpu", "maxtime": 86400, "jobseed": "all"}),
    ("OPP", {"pledgedcpu": -1, "maxtime": 21600, "mintime": 600, "jobseed": "eshigh", "catchall": "disableReassign"}),
    ("CACHE", {"direct_access_wan": True, "releases": ["ANY"], "maxinputsize": -1}),
    ("TEST", {"status": "test", "releases": ["ANY"]}),
    (
        "HPC",
        {
            "corecount": 64,
            "maxrss": 2000,
            "maxwdir": 10000,
            "wnconnectivity": "none",
            "catchall": "allow_no_pilot,per_core_attr",
            "workflow": "push",
        },
    ),
    ("SIM", {"catchall": "allowed_processing=simul|evgen,nSimEvents=200,jobChunkSize=50", "fairsharepolicy": "type=simul:100%"}),
    ("NOPILE", {"catchall": "excluded_processing=pile|reco", "transferringlimit": 500}),
    ("LOCAL", {"catchall": "use_only_local_data", "direct_access_lan": True, "timefloor": 60}),
    ("JUMBO", {"corecount": 16, "catchall": "useJumboJobs,minEventsForJumbo=1000", "jobseed": "es"}),
    ("IPV6", {"wnconnectivity": "full#IPv6", "transtimehi": 1, "transtimelo": 4}),
    ("SLOWDISK", {"maxdiskio": 200, "params": {"max_io_intensity": 300}}),
    ("NIGHT", {"status": "standby", "mintime": 7200, "timefloor": 120}),
    ("BARE", {"catchall": f"bareNucleus=only,secondaryNucleus={NUCLEI[1]},maxDiskPerCore=12000", "corecount": 8}),
    ("OLD", {"releases": ["Athena-22.0.70", "Athena-23.0.1"], "is_cvmfs": True}),
    ("DOWN", {"status": "offline"}),
    ("DRAIN", {"status": "brokeroff"}),
    ("WAIT", {"status": "paused"}),
    ("ANYSIZE", {"corecount": 0, "catchall": "grandly_unified", "type": "production"}),
    ("HTTP", {"wnconnectivity": "http", "direct_access_wan": True}),
    ("ATOMIC", {"corecount": -1, "fairsharepolicy": "gshare=Express:0%,gshare=any:100%"}),
)
"""Kinds of special queues: each site has one, some kinds stand at two sites."""

RELEASES: Mapping[str, tuple[str, ...]] = {"Athena": ("22.0.70", "23.0.1", "24.0.5"), "AnalysisBase": ("25.2.1",)}
"""Projects and versions that the dictionary ALL knows."""


def world() -> Entry:
    """The whole document."""
    draw = Random(SEED)
    queues = dict(_queues(draw))
    return {
        "format": "gridbroker-grid/1",
        "now": NOW,
        "sites": dict(_sites()),
        "storages": dict(_storages(draw)),
        "queues": queues,
        "links": list(_links(draw)),
        "slots": list(_slots(queues)),
        "measured": [{"queue": name, **_measured(draw)} for name in queues],
        "software": dict(_software(queues)),
        "pilots": list(_pilots(queues, draw)),
    }


def _sites() -> Iterator[tuple[str, Entry]]:
    """Every fourth site is a nucleus; one is closed; two have attributes that the document's table does not know."""
    for site in SITES:
        entry: Entry = {"nucleus": True} if site in NUCLEI else {}
        if site == CLOSED:
            entry["state"] = "DISABLED"
        if site in NUCLEI[:2]:
            entry["tier_level"] = 1
        if site == NUCLEI[2]:
            entry |= {"cpu_slots": 4000, "io_slots": 300}
        yield site, entry


def _storages(draw: Random) -> Iterator[tuple[str, Entry]]:
    """A disk at each site, a tape at each nucleus, areas for users at every second site, caches of virtual placement at some."""
    for number, site in enumerate(SITES):
        size = draw.randrange(200_000, 2_000_000, 1000) if site in NUCLEI else draw.randrange(3_000, 90_000, 100)
        yield _storage(site, "DATADISK", **{"free_gb": size, "expired_gb": draw.randrange(0, 5000, 10), **_state(number)})
        if site in NUCLEI:
            yield _storage(site, "DATATAPE", is_tape=True, free_gb=draw.randrange(1_000_000, 9_000_000, 1000))
        if number % 2:
            yield _storage(site, "SCRATCHDISK", free_gb=draw.randrange(500, 9000, 10))
        if _special(number)[0] == "CACHE":
            yield _storage(site, "VP_DISK", free_gb=0)
    yield _storage(SITES[5], "LOCALGROUPDISK", state="INACTIVE", endpoint_group="users")


def _state(number: int) -> Entry:
    """Space that is short or not published, and accesses that are off: the blacklist."""
    states: Mapping[int, Entry] = {
        3: {"status": {"write_lan": "OFF", "write_wan": "OFF"}},
        6: {"status": {"read_lan": "OFF"}},
        8: {"status": {"write_wan": "TEST"}},
        9: {"free_gb": 120, "expired_gb": 0},
        10: {"status": {"read_wan": "OFF"}},
        13: {"free_gb": None, "expired_gb": None},
        17: {"status": {"read_lan": "ON", "write_lan": "ON", "read_wan": "ON", "write_wan": "ON"}},
        20: {"free_gb": 2500},
    }
    return states.get(number, {})


def _storage(site: str, kind: str, **more: Any) -> tuple[str, Entry]:
    name = f"{site}_{kind}"
    entry: Entry = {"site": site, "type": "DATADISK" if kind == "VP_DISK" else kind} | more
    if not entry.get("is_tape"):
        entry["path"] = f"storage/{name}"
    if name == f"{SITES[0]}_DATADISK":
        entry["url"] = "https://storage.amberfell.example:8443"
    return name, entry


def _special(number: int) -> tuple[str, Entry]:
    return SPECIAL[number % len(SPECIAL)]


def _queues(draw: Random) -> Iterator[tuple[str, Entry]]:
    """Each site: a unified queue that gets pseudo-queues, one for users or production alone, a special one; nuclei one more."""
    for number, site in enumerate(SITES):
        power = round(draw.uniform(8, 22), 2)
        yield site, _queue(site, number, power, type="unified", capability="ucore", corecount=8, maxrss=16000, releases=["AUTO"])
        kind = "ANALY" if number % 2 else "PROD"
        own: Entry = {"type": "analysis"} if number % 2 else {"type": "production", "corecount": 8, "maxrss": 16000}
        yield f"{site}_{kind}", _queue(site, number, power, **own, releases=["AUTO"])
        suffix, special = _special(number)
        yield f"{site}_{suffix}", _queue(site, number, power, **{"type": "unified", **special})
        if site in NUCLEI:
            grand: Entry = {"corecount": 8, "maxrss": 32000, "maxtime": 345600, "catchall": "bareNucleus=allow"}
            yield f"{site}_CORE", _queue(site, number, power, type="unified", releases=["AUTO"], **grand)


def _queue(site: str, number: int, power: float, **more: Any) -> Entry:
    cores = max(int(more.get("corecount", 1)), 1)
    entry: Entry = {
        "atlas_site": site,
        "cloud": CLOUDS[number % len(CLOUDS)],
        "corecount": 1,
        "corepower": power,
        "maxrss": 2000 * cores,
        "maxtime": (172800, 259200, 86400)[number % 3],
        "maxwdir": 14000 * cores,
        "pledgedcpu": 500 * (1 + number % 7),
        "wnconnectivity": "full",
        "astorages": _roles(site, number, virtual=more.get("maxinputsize") == -1),
    }
    if number in (0, 1, 2) and more.get("capability"):
        entry["local_pilots"] = 1
    if site == NUCLEI[2] and more.get("maxtime") == 345600:
        entry["submission"] = "local"
    return entry | more


def _roles(site: str, number: int, virtual: bool) -> Entry:
    """Reading where the files are, tape behind disk; users write to an area of their own; a cache reads what is far away."""
    disk = f"{site}_DATADISK"
    reads = [f"{site}_VP_DISK"] if virtual else [disk, *([f"{site}_DATATAPE"] if site in NUCLEI else [])]
    roles: Entry = {"read_lan": reads, "write_lan": [disk]}
    if number % 2:
        roles |= {"read_lan_analysis": [*reads, f"{site}_SCRATCHDISK"], "write_lan_analysis": [f"{site}_SCRATCHDISK"]}
    return roles


def _links(draw: Random) -> Iterator[Entry]:
    """From every site to every nucleus: how near, and for most how fast and how many files wait; some full, some blocked."""
    for source_number, source in enumerate(SITES):
        for number, nucleus in enumerate(NUCLEI):
            if source == nucleus:
                continue
            chance = draw.random()
            near = draw.randint(0, 3) if source_number % len(CLOUDS) == number % len(CLOUDS) else draw.randint(2, 11)
            link: Entry = {"from": source, "to": nucleus, "closeness": -1 if chance < 0.02 else near}
            if chance < 0.9:
                usual = 120 if number in OVERLOADED else 40
                link["files_queued"] = draw.randrange(0, 500) if chance < 0.06 else draw.randrange(0, usual)
                speed = round(draw.uniform(0.5, 250), 1)
                link["mbps"] = {"1h": speed, "1d": round(speed * 0.8, 1), "1w": round(speed * 0.6, 1)}
            if chance > 0.6:
                link["at"] = f"2026-05-04T07:{draw.randrange(10, 60)}:00Z"
            yield link
            if chance > 0.95:
                yield {"from": source, "to": nucleus, "activity": "Express", "files_queued": draw.randrange(0, 60)}


def _slots(queues: Mapping[str, Entry]) -> Iterator[Entry]:
    """Declared slots: at queues that no pilot of ours asks for, by share, by class of resources, with an end."""
    pushed = [name for name in queues if name.endswith("_HPC")]
    for name in pushed:
        yield {"queue": name, "n": 40}
        yield {"queue": name, "share": "Production", "resource_type": "MCORE", "n": 25, "expires": "2026-12-31T00:00:00Z"}
    yield {"queue": SITES[0], "share": "Express", "n": 200}


def _pilots(queues: Mapping[str, Entry], draw: Random) -> Iterator[Entry]:
    """Which queues ask for work, for `manage.py decide`, which has no database that knows it; an import does not use it."""
    for name in queues:
        if not name.endswith(("_HPC", "_DOWN")):
            yield {
                "queue": name,
                "requests_3h": draw.randrange(5, 400),
                "last_start": f"2026-05-04T0{draw.randrange(5, 8)}:30:00Z",
            }


def _measured(draw: Random) -> Entry:
    return {"disk_io_per_core": round(draw.uniform(5, 400), 1), "starts_per_hour": draw.randrange(0, 300)}


def _software(queues: Mapping[str, Entry]) -> Iterator[tuple[str, Entry]]:
    """What AUTO queues publish: most everything from CVMFS, some only containers, some only tags, two that insist on hardware."""
    for number, name in enumerate(name for name, queue in queues.items() if queue.get("releases") == ["AUTO"]):
        kind = "gpu" if name.endswith("_GPU") else ("cvmfs", "cvmfs", "arm", "tags", "cvmfs", "prefix")[number % 6]
        yield name, _published(kind)
    yield "ALL", {"tags": list(_tags())}


def _published(kind: str) -> Entry:
    cpu: Entry = {"type": "cpu", "arch": ["x86_64"], "vendor": ["intel", "amd"], "instr": ["avx2", "avx512"]}
    match kind:
        case "gpu":
            gpu = {"type": "gpu", "vendor": ["nvidia", "excl"], "model": ["kt100", "any"]}
            return {"cmtconfigs": [PLATFORM], "containers": ["any"], "cvmfs": ["atlas"], "architectures": [cpu, gpu]}
        case "arm":
            arm = {"type": "cpu", "arch": ["aarch64", "excl"], "vendor": ["any"]}
            return {"cmtconfigs": [OTHER_PLATFORM], "containers": ["/cvmfs"], "cvmfs": ["any"], "architectures": [arm]}
        case "tags":
            return {"cmtconfigs": [PLATFORM], "tags": list(_tags())[:2], "architectures": [cpu]}
        case "prefix":
            return {"cmtconfigs": [PLATFORM], "containers": ["/images/"], "cvmfs": ["nightlies"], "architectures": [cpu]}
    return {"cmtconfigs": [PLATFORM], "containers": ["any", "/cvmfs"], "cvmfs": ["atlas", "nightlies"], "architectures": [cpu]}


def _tags() -> Iterator[Entry]:
    for project, versions in RELEASES.items():
        for version in versions:
            image = f"{project.lower()}-{version}"
            yield {
                "container_name": image,
                "sources": [f"/cvmfs/images/{image}", f"/images/{image}.sif"],
                "project": project,
                "release": version,
                "cmtconfig": PLATFORM,
            }


def written(document: Mapping[str, Any]) -> str:
    """The document as text, an entry a line."""
    parts = []
    for name, part in document.items():
        if isinstance(part, dict):
            lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in part.items())
            parts.append(f" {json.dumps(name)}: {{\n{lines}\n }}")
        elif isinstance(part, list):
            lines = ",\n".join(f"  {json.dumps(value)}" for value in part)
            parts.append(f" {json.dumps(name)}: [\n{lines}\n ]")
        else:
            parts.append(f" {json.dumps(name)}: {json.dumps(part)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("world.json")
    file.write_text(written(world()), encoding="utf-8")
    print(f"{file}: {file.stat().st_size} bytes")
