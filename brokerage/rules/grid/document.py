"""Our own grid document (format gridbroker-grid/1).

From JSON to what the grid tables hold, or to everything that is wrong with it.

Pure. Here: the document as a whole, its sites, storages and queues. Not here: the attributes (`attributes`), what it says of the
moment (`measurements`), reading the file (`brokerage.feeds.document`), writing the tables (`brokerage.ledger.grid`). One
fault refuses the whole document (decision B15).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError, WithJsonSchema

from broker_site.foundation.kernel.registry import nearest
from broker_site.foundation.kernel.verdict import Problem
from broker_site.foundation.outside_data import BOUNDED, MOST_PROBLEMS, STRICT, Expected, fault, found, problem, problems
from brokerage.rules.grid.attributes import (
    LONGEST_NAME,
    NAME,
    QUEUE,
    SITE,
    STORAGE,
    BadGrid,
    GridNames,
    QueueAttributes,
    SiteAttributes,
    StorageAttributes,
    Table,
    Work,
    is_role,
    name_fault,
)
from workqueues.rules.refine.characters import check_characters

__all__ = ["FORMAT", "BadGrid", "Entry", "Grid", "QueueEntry", "read_grid"]

FORMAT = "gridbroker-grid/1"

FROM_THE_DATABASE = ("jobs", "pilots", "workers", "replicas", "users", "work")
"""Parts that a single decision without a database needs; here the database knows them."""
STORED = ("links", "slots", "measured", "software")
"""Parts that are optional, and stored where they are there; what they say is read by `measurements`."""
LACKING = "the document has no"
LIKE_A_SLIP = 0.85
"""How like a known name an unknown one is that is taken for a slip of it: `staus`."""
LIKE_A_NAME = 0.7
"""How like a known name an unknown one is with which that is told: `cpu_core_count` with `corecount`."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One site, storage endpoint or queue: its name and its columns by name."""

    name: str
    columns: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class QueueEntry(Entry):
    """A queue; `storages` are (access, storage endpoint, position from 1)."""

    storages: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Grid:
    """A document as read. `notes` say what it has that is not used."""

    sites: tuple[Entry, ...]
    storages: tuple[Entry, ...]
    queues: tuple[QueueEntry, ...]
    notes: tuple[str, ...] = ()


E = TypeVar("E", bound=Entry)


def _format(form: object) -> object:
    if form != FORMAT:
        raise fault("format", f"expected {FORMAT!r}, found {found(form)}")
    return form


def _name(name: str) -> str:
    if wrong := name_fault(name):
        raise fault("name", wrong)
    return name


Name = Annotated[
    str,
    AfterValidator(_name),
    BOUNDED,
    WithJsonSchema({"type": "string", "maxLength": LONGEST_NAME, "allOf": [{"pattern": f"^{NAME}$"}]}),
]
ByName = Expected("an object with one member for each name")
MUST = "The document must have this part, even if it is empty."
NOT_STORED = "For a decision without a database; import_grid does not use it."


class Site(SiteAttributes):
    """A site of a document."""

    total_rw: Work = Field(0, description=f"Remaining work of the tasks of a nucleus, HS06 s. {NOT_STORED}")


class GridDocument(BaseModel):
    """Sites, storage endpoints, computing queues, links, software and slots; manage.py import_grid reads it."""

    model_config = STRICT

    format: Annotated[Any, BeforeValidator(_format), WithJsonSchema({"const": FORMAT})] = Field(description=f"Must be {FORMAT}.")
    now: Any = Field(None, description="Time to which counts refer; not stored.")
    sites: Annotated[dict[Name, Annotated[Site, BOUNDED]], ByName] = Field(description=MUST)
    storages: Annotated[dict[Name, Annotated[StorageAttributes, BOUNDED]], ByName] = {}
    queues: Annotated[dict[Name, Annotated[QueueAttributes, BOUNDED]], ByName] = Field(description=MUST)
    links: Any = None
    slots: Any = None
    measured: Any = None
    software: Any = None
    jobs: Any = Field(None, description=NOT_STORED)
    pilots: Any = Field(None, description=NOT_STORED)
    workers: Any = Field(None, description=NOT_STORED)
    replicas: Any = Field(None, description=NOT_STORED)
    users: Any = Field(None, description=NOT_STORED)
    work: Any = Field(None, description=NOT_STORED)


def read_grid(document: object) -> Grid:
    """Read a document.

    Raises BadGrid; rules: format, required, type, range, choice, length, name, reference, unknown, characters.
    """
    if not isinstance(document, Mapping):
        raise BadGrid([problem("", "type", f"expected an object, found {found(document)}")])
    if unstorable := check_characters(document):
        raise BadGrid(unstorable)
    sites, storages, queues = ({} if not isinstance(part := document.get(n), Mapping) else part for n in PLACES)
    wrong = [*islice((p for name, raw in queues.items() if (p := nickname_problem(name, raw))), MOST_PROBLEMS)]
    unknown = islice((name for name in document if name not in GridDocument.model_fields), MOST_PROBLEMS)
    some = {name: document[name] for name in (*GridDocument.model_fields, *unknown) if name in document}
    try:
        read = GridDocument.model_validate(some, context=GridNames(sites, storages, queues, LACKING))
    except ValidationError as error:
        raise BadGrid([*problems(error, GridDocument), *wrong]) from None
    if wrong:
        raise BadGrid(wrong)
    return Grid(
        tuple(site_entry(name, sites[name], site) for name, site in read.sites.items()),
        tuple(storage_entry(name, storages[name], storage) for name, storage in read.storages.items()),
        tuple(queue_entry(name, queues[name], queue) for name, queue in read.queues.items()),
        tuple(_notes(document)),
    )


PLACES = ("sites", "storages", "queues")
NOT_OF_A_SITE = ("total_rw",)
"""Attributes of a site for a decision without a database."""
NOT_OF_A_QUEUE = (*QUEUE, "nickname", "atlas_site", "astorages")
"""What a queue does not keep among its attributes."""
READ_AS_IT_CAME = ("cloud",)
"""What it keeps as it came, and decisions read."""
_KNOWN = {
    "sites": {*SITE, *NOT_OF_A_SITE},
    "storages": {*STORAGE},
    "queues": {*NOT_OF_A_QUEUE, *READ_AS_IT_CAME, *QueueAttributes.model_fields},
}
"""Part of the document -> attributes of its entries that something goes by."""


def nickname_problem(name: str, raw: object) -> Problem | None:
    """A queue that calls itself by another name."""
    nickname = raw.get("nickname") if isinstance(raw, Mapping) else None
    if nickname in (None, "", name):
        return None
    message = f"expected the name of the member, {name}, found {found(nickname)}"
    return problem(f"queues.{name[:100]}.nickname", "name", message)


def site_entry(name: str, raw: Mapping[str, Any], site: SiteAttributes) -> Entry:
    """One site with what nobody knows among its attributes."""
    return Entry(name, _columns(site, SITE) | {"attributes": _others(raw, (*SITE, *NOT_OF_A_SITE))})


def storage_entry(name: str, raw: Mapping[str, Any], storage: StorageAttributes) -> Entry:
    """One storage endpoint with what nobody knows among its attributes."""
    return Entry(name, _columns(storage, STORAGE) | {"attributes": _others(raw, STORAGE)})


def queue_entry(name: str, raw: Mapping[str, Any], queue: QueueAttributes) -> QueueEntry:
    """One queue; attributes without a column have their types, what nobody knows stays as it came."""
    values = vars(queue)
    others = _others(raw, NOT_OF_A_QUEUE)
    others |= {a: value for a in others if (value := values.get(a)) is not None}
    if roles := {role: names for role, names in (raw.get("astorages") or {}).items() if not is_role(role)}:
        others["astorages"] = roles
    columns = _columns(queue, QUEUE) | {"site": queue.atlas_site, "attributes": others}
    used = ((role, s, at) for role, names in queue.astorages.items() for at, s in enumerate(dict.fromkeys(names), 1))
    return QueueEntry(name, columns, tuple(used))


OURS = ("local_pilots", "submission", "path", "url")
"""Attributes that only a document of our own can set: a feed starts no process and names no directory or server here."""


def without_ours(entry: E) -> E:
    """An entry of a feed: nothing is said of what is ours."""
    return replace(entry, columns={name: value for name, value in entry.columns.items() if name not in OURS})


def _columns(entry: BaseModel, table: Table) -> dict[str, Any]:
    values = vars(entry)
    return {name: values[name] for name in table}


def _others(raw: Mapping[str, Any], known: Any) -> dict[str, Any]:
    return {name: value for name, value in raw.items() if name not in known}


def _misspelt(names: Collection[str]) -> dict[str, str]:
    """Attributes of queues that nobody knows, with the known one that they look like; others are many, and not spoken of."""
    unknown = sorted(name for name in names if name not in _KNOWN["queues"])[:MOST_PROBLEMS]
    return {name: near for name in unknown if (near := nearest(name, _KNOWN["queues"], LIKE_A_SLIP))}


class UnknownAttribute(NamedTuple):
    """An attribute that nobody knows, in how many entries of a part of the document; `near`: the known one that it is like."""

    part: str
    name: str
    entries: int
    near: str


def unknown_attributes(document: Mapping[str, Any]) -> list[UnknownAttribute]:
    """Those of a good document, first the ones that are like a known one: they are kept, and nothing goes by them."""
    counts = Counter(
        (part, name) for part in PLACES for raw in document.get(part, {}).values() for name in raw if name not in _KNOWN[part]
    )
    near = {place: nearest(place[1], _KNOWN[place[0]], LIKE_A_NAME) for place in islice(counts, MOST_PROBLEMS)}
    unknown = [UnknownAttribute(*place, count, near.get(place, "")) for place, count in counts.items()]
    return sorted(unknown, key=lambda one: (not one.near, one.name, one.part))


def _notes(document: Mapping[str, Any]) -> Iterator[str]:
    """What a good document has that is not used."""
    yield from (f"{name}: not used, the database knows them" for name in FROM_THE_DATABASE if document.get(name))
    for part, known in (("sites", (*SITE, *NOT_OF_A_SITE)), ("storages", STORAGE)):
        for name, raw in document.get(part, {}).items():
            yield from (f"{part}.{name}.{other}: not known; kept among the attributes" for other in _others(raw, known))
    misspelt = _misspelt({other for raw in document["queues"].values() for other in raw})
    for name, raw in document["queues"].items():
        for other in (other for other in raw if other in misspelt):
            yield f"queues.{name}.{other}: not known; kept among the attributes; the nearest known one is {misspelt[other]}"
        for role in raw.get("astorages") or ():
            if not is_role(role):
                yield f"queues.{name}.astorages.{role}: a role that is not used; kept among the attributes"
