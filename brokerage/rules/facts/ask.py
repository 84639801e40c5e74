"""What the brokerage needs to know of a task and of the chunk of its input that it wants to place.

Here: the frozen `Ask`, its JSON document (format gridbroker-ask/1) and what its units mean. Not here: how an ask is read from the
database (`brokerage.queries`), and what follows from it at a queue (`brokerage.rules.facts.needs`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from math import isfinite
from typing import Any, get_type_hints

from broker_site.foundation.kernel.verdict import Problem

Config = Mapping[str, Any]
"""Plain key names to typed values: defaults with overrides, as `gdpconfig.component` gives them."""

FORMAT = "gridbroker-ask/1"

HIGH_PRIORITY, VERY_HIGH_PRIORITY, EXPRESS_PRIORITY = 800, 900, 1000
"""From the first on a task goes only to its nucleus, from the second it prefers it, from the third it is express (seed 000)."""


SIGNED = frozenset({"priority", "task_priority", "t1_weight"})
"""Numbers that may be negative."""


class BadAsk(ValueError):
    """An ask document that cannot be used; `problems` has every fault with the path of its field."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(f"{p.field}: {p.message}" for p in problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class ChunkDataset:
    """One input dataset of the chunk: how much of it the chunk takes."""

    name: str = ""
    master: bool = False
    files: int = 0
    gb: float = 0.0


@dataclass(frozen=True, slots=True)
class Chunk:
    """The input to place: events in one job (of the largest, as jobs are cut), and files and size (GB = 10^9 bytes) of all of it.

    `job_gb` is the largest input of one job; None where the whole chunk may be one job. `ram_count` is what earlier tries of its
    files needed, in the unit of the task. `site` names the queues where files wait to be merged, `site_skipped_s` for how long
    those have been skipped.
    """

    n_events: int = 0
    files: int = 0
    gb: float = 0.0
    job_gb: float | None = None
    ram_count: float | None = None
    site: str | None = None
    site_skipped_s: float = 0.0
    datasets: tuple[ChunkDataset, ...] = ()

    @property
    def largest_gb(self) -> float:
        """Size of the largest input of one job, GB."""
        return self.gb if self.job_gb is None else self.job_gb


@dataclass(frozen=True, slots=True)
class Usage:
    """What the user of a task (or its working group) has on the grid: jobs and cores, and where the disk quota is used up."""

    running_jobs: int = 0
    queued_jobs: int = 0
    running_cores: int = 0
    queued_cores: int = 0
    quota_exceeded: bool = False
    full_storages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """One task and one chunk, as the brokers see them. None = not given; every unit as the task parameter has it.

    `priority` is the current one, `task_priority` that of the submission. `container_sources` are the places of the container by
    the tags of the whole grid; `release` is `project-version`. `output_tokens` name the storages that outputs go to, by name or
    type. `waits_s`: seconds since something was last made for the task.
    """

    task_id: int = 0
    vo: str = ""
    prod_source_label: str = ""
    processing_type: str = ""
    working_group: str | None = None
    user: str | None = None
    share: str | None = None
    resource_type: str | None = None
    priority: int = 0
    task_priority: int | None = None
    waits_s: float = 0.0
    cloud: str | None = None
    nucleus: str | None = None
    site: str | None = None
    included_sites: tuple[str, ...] = ()
    excluded_sites: tuple[str, ...] = ()
    core_count: int | None = None
    max_core_count: int | None = None
    ram_count: float | None = None
    ram_unit: str | None = None
    base_ram_count: float | None = None
    merge_core_count: int | None = None
    merge_ram_count: float | None = None
    cpu_time: float | None = None
    cpu_time_unit: str | None = None
    cpu_efficiency: float | None = None
    base_walltime: float | None = None
    walltime_s: float | None = None
    max_walltime_h: float | None = None
    out_disk_count: float | None = None
    out_disk_unit: str | None = None
    work_disk_count: float | None = None
    work_disk_unit: str | None = None
    n_gb_per_job: float | None = None
    io_intensity: float | None = None
    disk_io: float | None = None
    architecture: str | None = None
    release: str | None = None
    container_name: str | None = None
    container_sources: tuple[str, ...] = ()
    nightly: bool = False
    only_tags_for_fc: bool = False
    ip_connectivity: str | None = None
    ip_stack: str | None = None
    direct_access_only: bool = False
    use_local_io: bool = False
    avoid_vp: bool = False
    output_tokens: tuple[str, ...] = ()
    t1_weight: float = 0.0
    event_service: int = 0
    n_jumbo_jobs: int | None = None
    scout: bool = False
    merge: bool = False
    merge_output: bool = False
    chunk: Chunk = field(default_factory=Chunk)
    usage: Usage = field(default_factory=Usage)

    @property
    def preassigned(self) -> bool:
        """Whether the task itself, or where its files wait to be merged, says where it runs; such queues need not be online."""
        return bool(self.site or self.chunk.site)

    @property
    def bound_to_one(self) -> bool:
        """Whether the task names exactly one place."""
        return bool(self.site) and not self.chunk.site and "," not in (self.site or "").strip(", ")

    @property
    def urgent(self) -> bool:
        """Express: processing type urgent, or priority 1000 and more (seed 000)."""
        return self.processing_type == "urgent" or self.priority >= EXPRESS_PRIORITY

    @property
    def high(self) -> bool:
        """Priority 800 and more, or scouts (seed 000)."""
        return self.priority >= HIGH_PRIORITY or self.scout

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Ask:
        """Read a JSON document.

        Absent or null = not given, names that we do not know are ignored. Raises BadAsk with all faults.
        """
        problems: list[Problem] = []
        if (found := document.get("format", FORMAT)) != FORMAT:
            problems.append(Problem("format", "format", f"expected {FORMAT!r}, found {found!r}"))
        values = _read(cls, document, "", problems)
        if problems:
            raise BadAsk(problems)
        return cls(**values)

    def to_document(self) -> dict[str, Any]:
        """The JSON document from which `from_document` makes an equal ask."""
        document = asdict(self)
        for name in ("included_sites", "excluded_sites", "container_sources", "output_tokens"):
            document[name] = list(document[name])
        document["chunk"]["datasets"] = list(document["chunk"]["datasets"])
        document["usage"]["full_storages"] = list(document["usage"]["full_storages"])
        return {"format": FORMAT} | document


def _read(kind: type, document: Mapping[str, Any], path: str, problems: list[Problem]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    values: dict[str, Any] = {}
    for name in (f.name for f in fields(kind)):
        value = document.get(name)
        if value is None:
            continue
        try:
            values[name] = read = _READERS[hints[name]](value, f"{path}{name}", problems)
        except (TypeError, ValueError) as error:
            problems.append(Problem(f"{path}{name}", "type", str(error)))
            continue
        if isinstance(read, int | float) and read < 0 and name not in SIGNED:
            problems.append(Problem(f"{path}{name}", "range", f"expected 0 or more, found {value!r}"))
    return values


def _text(value: Any, _path: str, _problems: list[Problem]) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {value!r}")
    return value


def _whole(value: Any, _path: str, _problems: list[Problem]) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value != int(value):
        raise TypeError(f"expected a whole number, found {value!r}")
    return int(value)


def _number(value: Any, _path: str, _problems: list[Problem]) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise TypeError(f"expected a number, found {value!r}")
    return float(value)


def _flag(value: Any, _path: str, _problems: list[Problem]) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, found {value!r}")
    return value


def _texts(value: Any, path: str, problems: list[Problem]) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"expected a list, found {value!r}")
    return tuple(_text(item, path, problems) for item in value)


def _chunk(value: Any, path: str, problems: list[Problem]) -> Chunk:
    if not isinstance(value, Mapping):
        raise TypeError(f"expected an object, found {value!r}")
    return Chunk(**_read(Chunk, value, f"{path}.", problems))


def _usage(value: Any, path: str, problems: list[Problem]) -> Usage:
    if not isinstance(value, Mapping):
        raise TypeError(f"expected an object, found {value!r}")
    return Usage(**_read(Usage, value, f"{path}.", problems))


def _datasets(value: Any, path: str, problems: list[Problem]) -> tuple[ChunkDataset, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, Mapping) for item in value):
        raise TypeError("expected a list of objects")
    return tuple(ChunkDataset(**_read(ChunkDataset, item, f"{path}[{i}].", problems)) for i, item in enumerate(value))


_READERS: dict[Any, Callable[[Any, str, list[Problem]], Any]] = {
    str: _text,
    str | None: _text,
    int: _whole,
    int | None: _whole,
    float: _number,
    float | None: _number,
    bool: _flag,
    tuple[str, ...]: _texts,
    Chunk: _chunk,
    Usage: _usage,
    tuple[ChunkDataset, ...]: _datasets,
}
