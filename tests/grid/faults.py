"""Grid documents with one fault each: what is changed in the good one, and the path and rule that the refusal names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Document = dict[str, Any]


def put(*path: str, value: Any) -> Callable[[Document], None]:
    """Set one value, making what is missing on the way."""

    def change(document: Document) -> None:
        for name in path[:-1]:
            document = document.setdefault(name, {})
        document[path[-1]] = value

    return change


def drop(*path: str) -> Callable[[Document], None]:
    """Remove one value."""

    def change(document: Document) -> None:
        for name in path[:-1]:
            document = document[name]
        del document[path[-1]]

    return change


FAULTS: list[tuple[Callable[[Document], None], str, str]] = [
    (drop("format"), "format", "required"),
    (put("format", value="gridbroker-grid/2"), "format", "format"),
    (put("quues", value={}), "quues", "unknown"),
    (drop("sites"), "sites", "required"),
    (drop("queues"), "queues", "required"),
    (put("queues", value=[]), "queues", "type"),
    (put("sites", "NORTH", value="ACTIVE"), "sites.NORTH", "type"),
    (put("sites", "NORTH", "nucleus", value="yes"), "sites.NORTH.nucleus", "type"),
    (put("sites", "NORTH", "state", value="A" * 17), "sites.NORTH.state", "length"),
    (put("sites", "NO/RTH", value={}), "sites.NO/RTH", "name"),
    (put("sites", "", value={}), "sites.", "name"),
    (put("sites", "N" * 61, value={}), f"sites.{'N' * 61}", "name"),
    (put("storages", "A B", value={"site": "NORTH"}), "storages.A B", "name"),
    (drop("storages", "NORTH_DISK", "site"), "storages.NORTH_DISK.site", "required"),
    (put("storages", "NORTH_DISK", "site", value="WEST"), "storages.NORTH_DISK.site", "reference"),
    (put("storages", "NORTH_DISK", "free_gb", value=-1), "storages.NORTH_DISK.free_gb", "range"),
    (put("storages", "NORTH_DISK", "free_gb", value="plenty"), "storages.NORTH_DISK.free_gb", "type"),
    (put("storages", "NORTH_DISK", "status", "read_lan", value="YES"), "storages.NORTH_DISK.status.read_lan", "choice"),
    (put("storages", "NORTH_DISK", "status", "raed_lan", value="ON"), "storages.NORTH_DISK.status.raed_lan", "unknown"),
    (put("storages", "NORTH_DISK", "status", value="ON"), "storages.NORTH_DISK.status", "type"),
    (put("storages", "NORTH_DISK", "path", value="../../etc"), "storages.NORTH_DISK.path", "format"),
    (put("queues", "NORTH/MCORE", value={"atlas_site": "NORTH"}), "queues.NORTH/MCORE", "name"),
    (put("queues", "NORTH", "nickname", value="NORD"), "queues.NORTH.nickname", "name"),
    (drop("queues", "NORTH", "atlas_site"), "queues.NORTH.atlas_site", "required"),
    (put("queues", "NORTH", "atlas_site", value=7), "queues.NORTH.atlas_site", "type"),
    (put("queues", "NORTH", "atlas_site", value="WEST"), "queues.NORTH.atlas_site", "reference"),
    (put("queues", "NORTH", "status", value="onlnie"), "queues.NORTH.status", "choice"),
    (put("queues", "NORTH", "type", value="both"), "queues.NORTH.type", "choice"),
    (put("queues", "NORTH", "maxrss", value=-1), "queues.NORTH.maxrss", "range"),
    (put("queues", "NORTH", "maxrss", value="-8000"), "queues.NORTH.maxrss", "range"),
    (put("queues", "NORTH", "maxrss", value=True), "queues.NORTH.maxrss", "type"),
    (put("queues", "NORTH", "maxrss", value="8 GB"), "queues.NORTH.maxrss", "type"),
    (put("queues", "NORTH", "maxrss", value=8000.5), "queues.NORTH.maxrss", "type"),
    (put("queues", "NORTH", "maxtime", value=10**12), "queues.NORTH.maxtime", "range"),
    (put("queues", "NORTH", "corepower", value="nan"), "queues.NORTH.corepower", "type"),
    (put("queues", "NORTH", "corecount", value=-2), "queues.NORTH.corecount", "range"),
    (put("queues", "NORTH", "local_pilots", value=51), "queues.NORTH.local_pilots", "range"),
    (put("queues", "NORTH", "catchall", value=["gpu"]), "queues.NORTH.catchall", "type"),
    (put("queues", "NORTH", "catchall", value="x" * 1025), "queues.NORTH.catchall", "length"),
    (put("queues", "NORTH", "transtimehi", value="soon"), "queues.NORTH.transtimehi", "type"),
    (put("queues", "NORTH", "releases", value=[1]), "queues.NORTH.releases", "type"),
    (put("queues", "NORTH", "params", value=[]), "queues.NORTH.params", "type"),
    (put("queues", "NORTH", "astorages", value=[]), "queues.NORTH.astorages", "type"),
    (put("queues", "NORTH", "astorages", "read_lan", value="NORTH_DISK"), "queues.NORTH.astorages.read_lan", "type"),
    (put("queues", "NORTH", "astorages", "read_lan", value=["WEST"]), "queues.NORTH.astorages.read_lan[0]", "reference"),
    (put("queues", "NORTH", "note", value="a\0b"), "queues.NORTH.note", "characters"),
    (put("links", value={}), "links", "type"),
    (put("links", value=[{"to": "SOUTH"}]), "links[0].from", "required"),
    (put("links", value=[{"from": "NORTH", "to": "WEST"}]), "links[0].to", "reference"),
    (put("links", value=[{"from": "NORTH", "to": "SOUTH", "files_queued": -1}]), "links[0].files_queued", "range"),
    (put("links", value=[{"from": "NORTH", "to": "SOUTH", "mbps": {"1h": -5}}]), "links[0].mbps.1h", "range"),
    (put("links", value=[{"from": "NORTH", "to": "SOUTH", "mbps": {"1m": 5}}]), "links[0].mbps.1m", "unknown"),
    (put("links", value=[{"from": "NORTH", "to": "SOUTH", "activity": "a" * 65}]), "links[0].activity", "length"),
    (put("links", value=[{"from": "NORTH", "to": "SOUTH", "closeness": 12}]), "links[0].closeness", "range"),
    (put("links", value=[{"from": "NORTH", "to": "SOUTH", "at": "noon"}]), "links[0].at", "time"),
    (put("links", value=[{"from": "NORTH", "to": "SOUTH"}] * 2), "links[1]", "duplicate"),
    (put("slots", value=[{"queue": "WEST", "n": 1}]), "slots[0].queue", "reference"),
    (put("slots", value=[{"queue": "NORTH", "n": "many"}]), "slots[0].n", "type"),
    (put("slots", value=[{"queue": "NORTH", "n": 1}, {"queue": "NORTH", "n": 2}]), "slots[1]", "duplicate"),
    (put("measured", value=[{"queue": "NORTH", "disk_io_per_core": -1}]), "measured[0].disk_io_per_core", "range"),
    (put("software", value=[]), "software", "type"),
    (put("software", value={"WEST": {}}), "software.WEST", "reference"),
    (put("software", value={"NORTH": {"cvmfs": "atlas"}}), "software.NORTH.cvmfs", "type"),
    (put("software", value={"NORTH": {"tags": [{"sources": {}}]}}), "software.NORTH.tags[0].sources", "type"),
    (put("software", value={"NORTH": {"tags": [{"sources": "img"}]}}), "software.NORTH.tags[0].sources", "type"),
    (put("software", value={"NORTH": {"tags": [{"release": ["1"]}]}}), "software.NORTH.tags[0].release", "type"),
    (
        put("software", value={"NORTH": {"architectures": [{"type": "cpu", "arch": "x86_64"}]}}),
        "software.NORTH.architectures[0].arch",
        "type",
    ),
    (put("software", value={"NORTH": {"architectures": [{"type": ["cpu"]}]}}), "software.NORTH.architectures[0].type", "type"),
    (put("queues", "NORTH", "releases", value="ANY"), "queues.NORTH.releases", "type"),
    (put("queues", "NORTH", "fairsharepolicy", value=["type=any"]), "queues.NORTH.fairsharepolicy", "type"),
    (put("queues", "NORTH", "fairsharepolicy", value="group=(A|B:0%"), "queues.NORTH.fairsharepolicy", "format"),
    (put("queues", "NORTH", "fairsharepolicy", value="group=A)B(:0%"), "queues.NORTH.fairsharepolicy", "format"),
    (put("queues", "NORTH", "fairsharepolicy", value="grp=A:0%"), "queues.NORTH.fairsharepolicy", "format"),
    (put("queues", "NORTH", "fairsharepolicy", value="priority~5:0%"), "queues.NORTH.fairsharepolicy", "format"),
    (put("queues", "NORTH", "fairsharepolicy", value="type=evgen:none"), "queues.NORTH.fairsharepolicy", "format"),
]

SCHEMA_CANNOT_TELL = {"reference", "characters", "duplicate", "time"}
"""Rules that JSON Schema has no words for, or that are about two places."""
