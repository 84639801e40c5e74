"""Random questions for brokerage policies: tasks, grids and configurations, also those that nobody expects.

Here: what a question is made of. Not here: what is asked of a policy (`broker_site.roof.conformance.policies`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import nan
from random import Random
from typing import Any

from broker_site.foundation.gdpconfig.keys import APP, KEYS, Key
from broker_site.foundation.gdpconfig.values import Config
from broker_site.foundation.kernel.dice import dice
from brokerage.rules.decision.declare import Policy
from brokerage.rules.decision.policy_choice import NUCLEUS
from brokerage.rules.decision.policy_config import gathered
from brokerage.rules.facts.ask import Ask, Chunk, ChunkDataset, Usage
from brokerage.rules.facts.columns import Columns
from brokerage.rules.facts.snapshot import Nuclei, Queues

SOFTWARE = json.dumps(
    {
        "cvmfs": ["atlas"],
        "containers": ["any"],
        "cmtconfigs": ["x86_64-el9-gcc13-opt"],
        "tags": [{"cmtconfig": "x86_64-el9-gcc13-opt", "project": "Athena", "release": "25.0", "container_name": "img"}],
        "architectures": [{"type": "cpu", "arch": ["x86_64", "excl"]}, {"type": "gpu", "vendor": ["any"], "model": [""]}],
    }
)
STORAGES = json.dumps([{"name": "A_DISK", "type": "DATADISK", "free_gb": 900, "read_wan": True, "write_wan": False}])

TEXTS: Mapping[str, Sequence[str]] = {
    "unified_name": ("", "", "U", "A_HOSPITAL"),
    "site": ("", "A", "B"),
    "cloud": ("", "WORLD", "DE"),
    "storage": ("", "A_DISK", "B_DISK"),
    "type": ("unified", "production", "analysis"),
    "status": ("online", "online", "test", "offline", "paused"),
    "fairsharepolicy": ("", "type=evgensimul:100%", "type=any:0%,priority>400:100%", "nonsense"),
    "wnconnectivity": ("", "full", "http#IPv6", "none"),
    "software": ("", "{}", SOFTWARE),
    "allowed_processing": ("", "simul|reco"),
    "excluded_processing": ("", "simul"),
    "state": ("ACTIVE", "ACTIVE", "TEST", ""),
    "storages": ("", "[]", STORAGES),
}
"""Values of columns of text."""

WHOLE = (0, 0, 1, 2, 7, 20, 300, 10**6)
NUMBERS = (0.0, 0.0, nan, 0.5, 1.0, 200.0, 2000.0, 1e12)
"""Values of columns of numbers, beside the one that stands for not given."""

ASKED: Mapping[str, Sequence[Any]] = {
    "task_id": (0, 1, 10**12),
    "vo": ("", "atlas", "lab"),
    "prod_source_label": ("", "managed", "user", "test", "ptest"),
    "processing_type": ("", "simul", "reco", "urgent"),
    "working_group": (None, "AP_HIGG"),
    "user": (None, "", "ada"),
    "share": (None, "", "MC", "test"),
    "resource_type": (None, "SCORE", "MCORE_HIMEM"),
    "priority": (-5, 0, 400, 799, 800, 900, 1000, 10**6),
    "task_priority": (None, 0, 2000),
    "waits_s": (0.0, 1e9),
    "cloud": (None, "", "DE"),
    "nucleus": (None, "", "A"),
    "site": (None, None, "", "Q001", "Q*,A", "nowhere"),
    "included_sites": ((), ("*",), ("AUTO", "Q001"), ("nowhere",)),
    "excluded_sites": ((), ("Q*1",), ("*",)),
    "banned_sites": ((), (), ("A",), ("A", "B")),
    "stations": ((), (), ("st1",), ("st1", "st2")),
    "station_sites": ((), ("A",), ("nowhere",)),
    "core_count": (None, 0, 1, 8),
    "max_core_count": (None, 0, 4),
    "ram_unit": (None, "MB", "MBPerCore"),
    "cpu_time_unit": (None, "HS06sPerEvent", "mHS06sPerEvent"),
    "cpu_efficiency": (None, 0.0, 90.0),
    "out_disk_unit": (None, "kBPerEvent", "MB", "GB"),
    "work_disk_unit": (None, "MB", "GB"),
    "architecture": (None, "", "x86_64-el9-gcc13-opt#x86_64-intel&nvidia", "x86_64-.*", "(((", "@#&"),
    "release": (None, "", "Athena-25.0", "-"),
    "container_name": (None, "", "img", "docker://hub/img"),
    "container_sources": ((), ("/cvmfs/img",)),
    "ip_connectivity": (None, "", "http", "full#IPv6", "#"),
    "ip_stack": (None, "IPv4"),
    "output_tokens": ((), ("DATADISK",), ("nowhere", "A_DISK")),
    "t1_weight": (-1.0, 0.0, 3.0),
    "event_service": (0, 1),
    "n_jumbo_jobs": (None, 5),
}
"""Values of what a task says; other numbers of it are None, 0, little or much."""

AMOUNTS = (None, 0, 1, 2000, 10**9)
FLAGS = (False, False, True)


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One question: a task, rows of a table, a configuration and a seed. `number` makes it again (`trial`)."""

    number: int
    ask: Ask
    kind: type[Columns]
    rows: tuple[Mapping[str, Any], ...]
    config: Mapping[str, Any]
    seed: str

    def table(self) -> Columns:
        return self.kind.from_rows(self.rows)

    def __str__(self) -> str:
        return f"trial {self.number} ({len(self.rows)} rows)"


def trial(policy: Policy, number: int) -> Trial:
    """A question for a policy, always the same for a number.

    The first ones are grids without a candidate, with one, and with rows that are all 0 or all not a number.
    """
    drawn = dice("policy trial", number)
    kind = Nuclei if policy.activity == NUCLEUS else Queues
    size = (0, 1, 3, 3)[number] if number < 4 else drawn.choice((1, 2, 3, 8, 30))
    rows = [{"name": f"Q{i:03}", **_row(kind, drawn, number)} for i in range(size)]
    ask = Ask() if number < 2 else _ask(drawn)
    return Trial(number, ask, kind, tuple(rows), _config(policy, drawn if number > 3 else None), str(number))


def _row(kind: type[Columns], drawn: Random, number: int) -> dict[str, Any]:
    row = {}
    for column, (what, default) in kind.kinds().items():
        values: Sequence[Any] = {
            "text": (default, *TEXTS.get(column, ("", "A"))),
            "int": (0,) if number == 2 else (default, *WHOLE),
            "float": (0.0,) if number == 2 else (nan,) if number == 3 else (default, *NUMBERS),
            "flag": (default, False, True),
        }[what]
        row[column] = drawn.choice(values)
    return {column: value for column, value in row.items() if column != "name"}


def _ask(drawn: Random) -> Ask:
    values = {}
    for field in fields(Ask):
        if field.name not in ("chunk", "usage"):
            values[field.name] = drawn.choice(ASKED.get(field.name, FLAGS if field.type == "bool" else AMOUNTS))
    return Ask(**values, chunk=_chunk(drawn), usage=_usage(drawn))


def _chunk(drawn: Random) -> Chunk:
    files, gb = drawn.choice((0, 1, 500)), drawn.choice((0.0, 0.3, 4000.0))
    datasets = (ChunkDataset("in", master=True, files=files, gb=gb),) if files and drawn.random() < 0.5 else ()
    return Chunk(
        n_events=drawn.choice((0, 1, 10**7)),
        files=files,
        gb=gb,
        job_gb=drawn.choice((None, 0.0, gb)),
        ram_count=drawn.choice((None, 0.0, 5000.0)),
        site=drawn.choice((None, None, None, "Q001")),
        site_skipped_s=drawn.choice((0.0, 1e6)),
        datasets=datasets,
    )


def _usage(drawn: Random) -> Usage:
    counts = (0, 0, 50, 10**6)
    jobs = {name: drawn.choice(counts) for name in ("running_jobs", "queued_jobs", "running_cores", "queued_cores")}
    return Usage(**jobs, quota_exceeded=drawn.random() < 0.1, full_storages=drawn.choice(((), ("A_DISK",))))


def _config(policy: Policy, drawn: Random | None) -> dict[str, Any]:
    """The policy's configuration: the defaults, or (`drawn`) with some keys at a bound or otherwise than usual."""
    config = gathered(policy, Config().component)
    if drawn is not None:
        for key in known_keys(policy):
            if "<" not in key.name and drawn.random() < 0.2:
                config[key.name] = drawn.choice(_other_values(key))
    return config


def known_keys(policy: Policy) -> list[Key]:
    """The keys that the policy reads and that its components declare."""
    places = {(app or APP, component) for app, _, component in (place.rpartition(":") for place in policy.components)}
    return [key for key in KEYS if (key.app, key.component) in places and key.name in policy.keys]


def _other_values(key: Key) -> list[Any]:
    bounds = [key.accept(bound) for bound in (key.low, key.high) if bound is not None and key.type not in ("str", "list")]
    if key.type == "bool":
        return [not key.default]
    return [*bounds, *key.choices, key.default] if key.type != "list" else [key.default]
