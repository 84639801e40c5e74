"""The attributes of sites, storage endpoints and computing queues, each declared once: name, type, unit, range, default, help.

From these models follow the reading of our own document (`document`) and of CRIC's (`cric`), the JSON Schema, the columns of the
tables, the fields of REST and admin, overrides, what-if edits and the row of a decision's snapshot. Names and units are those of
the facts on queues 5.1; numbers may come as text, missing or empty means the default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache, cached_property
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import (
    AS_GIVEN,
    BOUNDED,
    LARGEST,
    STRICT,
    WHOLE,
    Expected,
    Flag,
    OutsideDataError,
    fault,
    found,
    parts,
    problems,
)
from brokerage.rules.grid.fair_share import policy_fault

QueueStatus = Literal["online", "standby", "brokeroff", "test", "offline", "paused"]
QueueType = Literal["production", "analysis", "unified"]
Submitters = Literal["none", "local"]
Access = Literal["read_lan", "write_lan", "read_wan", "write_wan"]
AccessState = Literal["ON", "OFF", "TEST"]
QUEUE_STATUSES, QUEUE_TYPES = get_args(QueueStatus), get_args(QueueType)
ACCESSES, ACCESS_STATES = get_args(Access), get_args(AccessState)

ROLE = r"(?:read|write)_lan(?:_[a-z0-9]+)?"
"""Roles of a storage endpoint at a queue that are used: reading and writing in the site, with `_analysis` for that scope."""

NAME = r"[A-Za-z0-9][A-Za-z0-9._:@+-]*"
LONGEST_NAME = 60


class BadGrid(OutsideDataError):
    """A document of the grid that cannot be used."""


@dataclass(frozen=True, slots=True)
class GridNames:
    """Names to which the entries of a document may refer, and how it is said that one is not among them."""

    sites: Collection[str] = ()
    storages: Collection[str] = ()
    queues: Collection[str] = ()
    lacking: str = "there is no"
    faults: list[Any] = field(default_factory=list)


def reference(kind: str, noun: str) -> AfterValidator:
    """The name of a site, storage endpoint or queue; checked where the reader knows the names (its context is `GridNames`)."""

    def check(name: str, info: ValidationInfo) -> str:
        if name and info.context is not None and name not in (known := getattr(info.context, kind)):
            near = nearest(name, known)
            hint = f"; the nearest known one is {near}" if near else ""
            raise fault("reference", f"{info.context.lacking} {noun} {name[:40]!r}{hint}")
        return name

    return AfterValidator(check)


def name_fault(name: str) -> str:
    """What is wrong with the name of a site, storage endpoint or queue; empty if nothing."""
    if "/" in name:
        return f"{found(name)} holds a '/', which stands between a queue and its resource type"
    if len(name) > LONGEST_NAME:
        return f"{len(name)} characters, the limit is {LONGEST_NAME}"
    if not re.fullmatch(NAME, name):
        return f"{found(name)} is not a name: letters, digits and . _ : @ + - , a letter or digit first"
    return ""


def moment(text: str) -> datetime:
    """A time as documents write it; without zone it is UTC. Raises ValueError."""
    read = datetime.fromisoformat(text)
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read


class _TextNumber:
    """A number that may come as text."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(number_from_text, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        number = handler(schema)
        sign = "-?" if number.get("minimum", 0) < 0 else ""
        return {"anyOf": [number, {"type": "string", "pattern": rf"^\s*{sign}\d+(\.\d+)?([eE][+-]?\d+)?\s*$"}]}


def number_from_text(value: object) -> object:
    """A text that holds a number as that number, everything else as it is."""
    try:
        return (float(value) if re.search(r"[.eEnN]", value) else int(value)) if isinstance(value, str) else value
    except ValueError:
        raise fault("type", f"expected a number, found {found(value)}") from None


def _time(value: object) -> datetime:
    try:
        return moment(value if isinstance(value, str) else "")
    except ValueError:
        raise fault("time", f"expected a time like 2026-11-21T12:00:00Z, found {found(value)}") from None


def _texts(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise fault("type", f"expected a list of texts, found {found(value)}")
    return list(dict.fromkeys(stripped for text in value if (stripped := text.strip())))


def _policy(policy: str) -> str:
    if wrong := policy_fault(policy):
        raise fault("format", wrong)
    return policy


def _no_parent(path: str) -> str:
    if ".." in path.split("/"):
        raise fault("format", "expected a directory without '..'")
    return path


def _address(url: str) -> str:
    if url and not re.fullmatch(r"https?://[A-Za-z0-9.\-\[\]:]+(/[A-Za-z0-9._~/-]*)?", url):
        raise fault("format", "expected an address like https://storage.example:8443, without user, query or fragment")
    return url.rstrip("/")


TEXT_NUMBER = _TextNumber()
Count = Annotated[int, Field(ge=0, le=LARGEST), WHOLE, TEXT_NUMBER]
Megabytes = Annotated[int, Field(ge=0, le=LARGEST, json_schema_extra={"unit": "MB"}), WHOLE, TEXT_NUMBER]
Seconds = Annotated[int, Field(ge=0, le=LARGEST, json_schema_extra={"unit": "s"}), WHOLE, TEXT_NUMBER]
Number = Annotated[float, Field(ge=0, le=LARGEST), AS_GIVEN, TEXT_NUMBER]
OpenNumber = Annotated[float, Field(ge=-1, le=LARGEST), AS_GIVEN, TEXT_NUMBER]
"""A number, or -1 for something that is none."""
Days = Annotated[float, Field(ge=0, le=LARGEST, json_schema_extra={"unit": "d"}), AS_GIVEN, TEXT_NUMBER]
Gigabytes = Annotated[float, Field(ge=0, le=1e12, json_schema_extra={"unit": "GB"}), AS_GIVEN, TEXT_NUMBER]
Work = Annotated[float, Field(ge=0, le=1e18, json_schema_extra={"unit": "HS06 s"}), AS_GIVEN, TEXT_NUMBER]
Texts = Annotated[list[str], BeforeValidator(_texts)]
Time = Annotated[datetime, BeforeValidator(_time, json_schema_input_type=str)]
SiteName = Annotated[str, reference("sites", "site")]
StorageName = Annotated[str, reference("storages", "storage endpoint"), BOUNDED]
QueueName = Annotated[str, Field(max_length=LONGEST_NAME), reference("queues", "queue")]


class Attributes(BaseModel):
    """Attributes of one entry of a document: empty ones have their default, unknown ones are left to who reads the document."""

    model_config = STRICT | ConfigDict(extra="ignore", frozen=False)

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        texts = _may_be_empty(cls)
        return {name: value for name, value in raw.items() if value is not None and (value != "" or name in texts)}

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        model = handler.resolve_ref_schema(handler(schema))
        required, texts = model.get("required", ()), _may_be_empty(cls)
        for name, value in model["properties"].items():
            if name not in required:
                annotations = {word: value.pop(word) for word in ("description", "default", "unit") if word in value}
                model["properties"][name] = {"anyOf": [value, {"enum": [None] if name in texts else ["", None]}]} | annotations
            elif value.get("type") == "string":
                value["minLength"] = 1
        return model


@cache
def _may_be_empty(model: type[Attributes]) -> frozenset[str]:
    """The attributes for which an empty text is a value of its own."""
    return frozenset(a.name for a in attributes_of(model).values() if a.kind == "text" and not a.choices and not a.required)


class SiteAttributes(Attributes):
    """A place that computes or stores."""

    state: str = Field("ACTIVE", max_length=16, description="Only ACTIVE sites are used; Draining ones end what they have.")
    nucleus: Flag = Field(False, description="May collect the outputs of tasks.")
    cpu_slots: Count | None = Field(
        None, description="Slots for jobs that compute, by which submission goes; empty: declared ones."
    )
    io_slots: Count | None = Field(None, description="The same for jobs that mostly read and write; empty: a tenth of cpu_slots.")


class StorageAttributes(Attributes):
    """A storage area of a site."""

    site: Annotated[SiteName, Field(max_length=LONGEST_NAME)] = Field(description="Site of the endpoint.")
    type: str = Field("DATADISK", max_length=32, description="DATADISK, SCRATCHDISK, DATATAPE, ...")
    state: str = Field("ACTIVE", max_length=16, description="Only ACTIVE endpoints are used.")
    is_tape: Flag = Field(False, description="Files have to be staged.")
    free_gb: Gigabytes | None = Field(None, description="Free space, GB = 10^9 bytes.")
    expired_gb: Gigabytes | None = Field(None, description="Space of expired files, GB.")
    status: dict[Annotated[Access, BOUNDED], Annotated[AccessState, BOUNDED]] = Field(
        {}, description=f"{', '.join(ACCESS_STATES)} per access: {', '.join(ACCESSES)}."
    )
    path: Annotated[str, Field(max_length=1024), AfterValidator(_no_parent)] = Field(
        "", description="Directory that local pilots reach; relative: below the instance's folder."
    )
    url: Annotated[str, Field(max_length=400), AfterValidator(_address)] = Field(
        "",
        description="Address of its storage server, http(s)://host:port; for pilots and movers that do not reach the directory.",
    )


class QueueColumns(Attributes):
    """Attributes of a queue with a column of their own."""

    status: QueueStatus = Field("online", description="Whether and how the queue is used.")
    type: QueueType = Field("production", description="Which activities it takes; unified is both.")
    capability: str = Field("", max_length=32, description="ucore: the queue gets pseudo-queues.")
    corecount: Annotated[int, Field(ge=-1, le=LARGEST), WHOLE, TEXT_NUMBER] = Field(
        0, description="Cores per slot; 0 and -1: any."
    )
    corepower: Annotated[float, Field(ge=0, le=1e6), AS_GIVEN, TEXT_NUMBER] = Field(
        0, description="HS06 per core; 0: unknown, 10 is used."
    )
    maxrss: Megabytes = Field(0, description="Memory per slot, MB; 0: no limit.")
    minrss: Megabytes = Field(0, description="Least memory of a job, MB per slot.")
    maxtime: Seconds = Field(0, description="Longest job, s; 0: no limit.")
    mintime: Seconds = Field(0, description="Shortest job, s.")
    maxwdir: Megabytes = Field(0, description="Scratch disk per slot, MB; 0: no limit.")
    transferringlimit: Count = Field(0, description="Most jobs in transferring; 0: 2000.")
    workflow: str = Field("", max_length=32, description="Selects HEARTBEAT_TIMEOUT_<workflow>.")
    catchall: str = Field("", max_length=1024, description="Further switches: key or key=value, comma list.")
    local_pilots: Annotated[int, Field(ge=0, le=50), WHOLE, TEXT_NUMBER] = Field(
        0, description="Pilots that `up` and `demo` start for the queue."
    )
    submission: Submitters = Field("none", description="local: its jobs are submitted, each with a pilot; none: pilots ask.")


class QueueFurther(Attributes):
    """Attributes of a queue that are typed but have no column: kept among the others."""

    timefloor: Number | None = Field(None, description="Least time for which a pilot asks for further jobs, min.")
    maxinputsize: OpenNumber | None = Field(None, description="Largest input of a job, MB; -1: always read in place.")
    maxdiskio: Number | None = Field(None, description="Disk I/O, kB/s per core.")
    pledgedcpu: OpenNumber | None = Field(None, description="Pledged cores; -1: opportunistic.")
    transtimehi: Days | None = Field(None, description="Time limit of transferring from priority 800 on, days.")
    transtimelo: Days | None = Field(None, description="Time limit of transferring below priority 800, days.")
    direct_access_lan: Flag | None = Field(None, description="Jobs read from the local storage without copying.")
    direct_access_wan: Flag | None = Field(None, description="Jobs read from other storages without copying.")
    is_cvmfs: Flag | None = Field(None, description="Software from CVMFS.")
    fairsharepolicy: Annotated[str, AfterValidator(_policy)] | None = Field(
        None, description="Which work has a share: a comma list of field=value[:field=value]:share, `(A|B)` for one of several."
    )
    wnconnectivity: str | None = Field(None, description="connectivity#stack, as full#IPv6.")
    jobseed: Literal["std", "es", "eshigh", "all"] | None = Field(None, description="Kinds of event-service jobs.")
    releases: Texts | None = Field(None, description="AUTO, ANY, or names of releases.")
    params: dict[str, Any] | None = Field(None, description="Switches that are looked up before catchall.")


class QueueAttributes(QueueFurther, QueueColumns):
    """A computing queue as a document gives it."""

    nickname: str = Field("", description="The name again.")
    atlas_site: SiteName = Field(description="Site of the processors.")
    astorages: dict[
        Annotated[str, Field(pattern=f"^{ROLE}$", max_length=32)],
        Annotated[list[StorageName], Expected("a list of storage endpoints"), BOUNDED],
    ] = Field({}, description="Storage endpoints by role, the default first; other roles are kept, not used.")

    @model_validator(mode="before")
    @classmethod
    def _used_roles(cls, raw: Any) -> Any:
        if isinstance(raw, Mapping) and isinstance(raw.get("astorages"), Mapping):
            return {**raw, "astorages": {role: names for role, names in raw["astorages"].items() if is_role(role)}}
        return raw


def is_role(role: str) -> bool:
    """Whether the storage endpoints of a role are used."""
    return len(role) <= 32 and re.fullmatch(ROLE, role) is not None


Kind = Literal["text", "int", "number", "flag", "texts", "object", "time"]
_KINDS: Mapping[Any, Kind] = {
    bool: "flag",
    int: "int",
    float: "number",
    str: "text",
    Literal: "text",
    list: "texts",
    dict: "object",
    datetime: "time",
}


@dataclass(frozen=True)
class Attribute:
    """One declared attribute, for who goes through all of them."""

    name: str
    kind: Kind
    doc: str
    default: Any
    required: bool
    choices: tuple[str, ...]
    length: int
    type: Any = field(repr=False)

    def read(self, raw: object) -> Any:
        """The value of a text, number or member of JSON; empty means the default. Raises BadGrid."""
        if self.required and (raw is None or (isinstance(raw, str) and not raw.strip())):
            raise BadGrid([Problem("", "required", self.doc)])
        if raw is None or (raw == "" and (self.kind != "text" or self.choices)):
            return self.default
        try:
            return self._reader.validate_python(raw)
        except ValidationError as error:
            raise BadGrid(problems(error, self.type)) from None

    @cached_property
    def _reader(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.type, config=ConfigDict(strict=True, allow_inf_nan=False))

    def from_text(self, text: str) -> Any:
        """What an operator writes for a value, as a document would have it. Raises BadGrid; rule json."""
        plain = text.strip()
        if self.kind == "flag":
            return FLAGS.get(plain.lower(), text)
        if self.kind == "texts" and plain and not plain.startswith("["):
            return plain.split(",")
        if self.kind in ("object", "texts") and plain:
            try:
                return json.loads(plain)
            except (ValueError, RecursionError):
                wanted = "object" if self.kind == "object" else "list"
                raise BadGrid([Problem("", "json", f"expected a JSON {wanted}, found {found(text)}")]) from None
        return text


FLAGS = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)

Table = Mapping[str, Attribute]


def attributes_of(model: type[BaseModel]) -> Table:
    """The attributes of a model by the names that documents use."""
    return MappingProxyType({a.name: a for a in (_attribute(name, info) for name, info in model.model_fields.items())})


def _attribute(name: str, info: FieldInfo) -> Attribute:
    inside = [*parts(info.annotation)]
    kind = next(_KINDS[t] for part in inside if (t := get_origin(part) or part) in _KINDS)
    choices = next((get_args(part) for part in inside if get_origin(part) is Literal), ())
    length = next((mark.max_length for mark in info.metadata if hasattr(mark, "max_length")), 0)
    declared: Any = Annotated[info.annotation, *info.metadata, None]
    required = info.is_required()
    default = None if required else info.default
    return Attribute(info.alias or name, kind, info.description or "", default, required, choices, length, declared)


def in_a_line(problem: Problem) -> str:
    """What is wrong with a value, with the place inside it."""
    return f"{problem.field}: {problem.message}" if problem.field else problem.message


SITE, STORAGE = attributes_of(SiteAttributes), attributes_of(StorageAttributes)
QUEUE, FURTHER = attributes_of(QueueColumns), attributes_of(QueueFurther)
