"""Documents as CRIC writes them, small and right in every respect; tests change one thing in them."""

from __future__ import annotations

from typing import Any

SITES: dict[str, Any] = {
    "SITE-A": {"name": "SITE-A", "state": "ACTIVE", "tier_level": 1, "datapolicies": ["Nucleus"], "presources": {"ALPHA": {}}},
    "SITE-B": {"name": "SITE-B", "state": "DISABLED", "tier_level": 2, "datapolicies": []},
}
STORAGES: dict[str, Any] = {
    "A_DATADISK": {
        "site": "SITE-A",
        "token": "ATLASDATADISK",
        "type": "DATADISK",
        "is_tape": False,
        "state": "ACTIVE",
        "space_free": "1000",
        "space_expired": 500,
        "detailed_status": {"read_lan": "ON", "write_wan": "OFF", "delete_wan": "OFF", "read_wan": ""},
    },
    "A_SCRATCHDISK": {"site": "SITE-A", "token": "T", "type": "SCRATCHDISK", "is_tape": None, "space_total": 9, "space_used": 4},
    "A_TAPE": {"site": "SITE-A", "token": "ATLASDATATAPE", "type": "DATATAPE", "is_tape": "Y", "state": "ACTIVE"},
}
QUEUES: dict[str, Any] = {
    "ALPHA": {
        "nickname": "ALPHA",
        "panda_resource": "ALPHA",
        "atlas_site": "SITE-A",
        "cloud": "C1,C2",
        "type": "unified",
        "status": "online",
        "capability": "ucore",
        "corecount": "8",
        "corepower": "11.5",
        "maxrss": "16000",
        "minrss": None,
        "maxtime": 172800.0,
        "mintime": "",
        "maxwdir": "160000",
        "timefloor": "60",
        "transtimelo": None,
        "direct_access_lan": True,
        "direct_access_wan": "True",
        "is_cvmfs": 1,
        "releases": ["AUTO"],
        "catchall": "jobChunkSize=50",
        "copytools": {"rucio": {}},
        "local_pilots": 40,
        "astorages": {
            "read_lan": ["A_DATADISK", "A_TAPE"],
            "write_lan": ["A_DATADISK"],
            "write_lan_analysis": ["A_SCRATCHDISK"],
            "es_events": ["ANYTHING"],
        },
    },
    "BETA": {
        "panda_resource": "BETA",
        "atlas_site": "SITE-B",
        "type": "",
        "maxwdir": "none",
        "maxinputsize": "14336",
        "releases": ["Athena-1", " AUTO"],
        "params": "",
    },
    "GAMMA": {"atlas_site": "SITE-B", "maxwdir": "a lot", "status": "test"},
    "DELTA": {"atlas_site": "SITE-B", "status": "brokeroff"},
    "EPSILON": {"atlas_site": "SITE-A"},
    "ZETA": {"atlas_site": "SITE-A"},
    "ALL": {"atlas_site": "NOWHERE"},
}
SOFTWARE: dict[str, Any] = {
    "ALPHA": {
        "cmtconfigs": ["x86_64-el9-gcc13-opt"],
        "containers": ["any"],
        "cvmfs": ["atlas"],
        "architectures": [{"type": "cpu", "arch": ["x86_64"]}],
        "tags": [],
    },
    "ALL": {"tags": [{"container_name": "img", "sources": ["/cvmfs/img"], "project": "Athena", "release": "1"}]},
    "UNKNOWN_QUEUE": {"cvmfs": ["atlas"]},
}
NETWORK: dict[str, Any] = {
    "SITE-A:SITE-B": {
        "files": {
            "done": {"Production Output": {"1h": 5, "6h": 9, "timestamp": "2026-05-04T07:50:00"}},
            "queued": {
                "Production Output": {"latest": 42, "timestamp": "2026-05-04T07:50:00"},
                "Express": {"latest": "3", "timestamp": "2026-05-04T07:20:00"},
            },
        },
        "mbps": {
            "fts": {"1h": 85, "1d": "60.5", "1w": None, "timestamp": "2026-05-04T07:45:00"},
            "rucio": {"1h": 1, "timestamp": "2026-05-04T07:45:00"},
        },
    },
    "SITE-A:MARS": {"mbps": {"fts": {"1h": 85, "timestamp": "2026-05-04T07:45:00"}}},
    "SITE-B:SITE-A": {"files": {"queued": {"Express": {"latest": -3, "timestamp": "2026-05-04T07:50:00"}}}},
}
CLOSENESS: list[Any] = [
    {"src": "SITE-A", "dst": "SITE-B", "closeness": 4},
    {"src": "SITE-B", "dst": "SITE-A", "closeness": "-1"},
    {"src": "SITE-B", "dst": "MARS", "closeness": 1},
    {"src": "SITE-A", "dst": "SITE-A", "closeness": 12},
]
