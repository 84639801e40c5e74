"""A job as the server hands it out, checked and frozen; how it can fail."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brokerage.pilot.joblog import LOG_MAX
from brokerage.pilot.storage_root import StorageRoot


class BadJob(Exception):
    """The server's words cannot be run; the text says why."""


class Failure(Exception):
    """The job has failed and is to be reported so.

    code: BAD_JOB, NO_CONTAINER, TRF_NOT_FOUND, BAD_PARAMETERS, PAYLOAD_START, PAYLOAD_EXIT, PAYLOAD_MEMORY, PAYLOAD_DISK,
    PAYLOAD_LOST, WALLTIME, KILLED, PILOT_STOPPED, PILOT_ERROR (the worker node's own disk), INPUT_MISSING, INPUT_CORRUPT,
    STAGEIN_FAILED, BAD_METADATA, OUTPUT_MISSING, OUTPUT_EXISTS, STAGEOUT_FAILED or STORAGE_DOWN. missing, corrupt: names of
    input files that no source has, or has only damaged. down: storage endpoints whose root is not there. of_node: the fault is
    that of the worker node, where other jobs would fail as well.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        missing: tuple[str, ...] = (),
        corrupt: tuple[str, ...] = (),
        down: tuple[str, ...] = (),
        of_node: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.missing = missing
        self.corrupt = corrupt
        self.down = down
        self.of_node = of_node


class LeaseLost(Exception):
    """The job is no longer ours: nothing may be written or reported any more."""


@dataclass(frozen=True)
class Source:
    """A copy of an input: its absolute path, and the root of its storage (None: the server does not say it).

    `url`: its signed address at the storage's server; the copy is read there where this node does not see the directory.
    """

    path: Path | None
    root: StorageRoot | None = None
    storage: str = ""
    url: str = ""

    @property
    def remote(self) -> bool:
        """Whether it is read from the server now."""
        return _is_remote(self.path, self.root, self.url)


@dataclass(frozen=True)
class Input:
    """A file to fetch.

    Name, size in bytes and adler32 as 8 hex digits (None = not checked), copies to try, nearest first.
    """

    lfn: str
    size: int | None
    checksum: str | None
    sources: tuple[Source, ...]


@dataclass(frozen=True)
class Output:
    """A file to write: name, storage endpoint and absolute path there; a log is made by the pilot.

    source_name: what the payload calls it, where that is not its name. root: that of the storage, which is never made. url,
    remove_url: signed addresses at the storage's server to write and to remove it, where this node does not see the directory.
    streams: of a log, where each of its streams goes as a plain file; source_name is then that of the stream.
    """

    lfn: str
    storage: str
    path: Path | None
    is_log: bool
    optional: bool
    source_name: str
    root: StorageRoot | None
    url: str = ""
    remove_url: str = ""
    streams: tuple[Output, ...] = ()

    @property
    def remote(self) -> bool:
        """Whether it is written to the server now."""
        return _is_remote(self.path, self.root, self.url)

    @property
    def made_as(self) -> str:
        """The file in the working folder."""
        return self.source_name or self.lfn


@dataclass(frozen=True)
class Job:
    """One attempt at a job. lease_s: seconds the server waits for a heartbeat; limits 0 = none (MB = 10^6 bytes, seconds).

    metadata_file: the file in the working folder that says what the payload tells the server; empty: it has nothing to tell.
    log_max: bytes of each stream that its log keeps.
    """

    id: int
    epoch: int
    token: str
    lease_s: float
    task_id: int
    attempt_nr: int
    queue: str
    transformation: str
    parameters: str
    container: str
    cores: int
    memory_mb: int
    disk_mb: int
    walltime_s: float
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    metadata_file: str = ""
    log_max: int = LOG_MAX

    @property
    def name(self) -> str:
        """`<id>.<epoch>`: this attempt, in file names and logs."""
        return f"{self.id}.{self.epoch}"


@dataclass(frozen=True)
class Ticket:
    """What is needed to answer for a job, readable even when the rest of it is not."""

    id: int
    epoch: int
    token: str


def read_ticket(document: dict[str, Any]) -> Ticket:
    """Id, epoch and token of a handed-out job; BadJob when not even they are there."""
    try:
        return Ticket(int(document["id"]), int(document["epoch"]), str(document["token"]))
    except (KeyError, TypeError, ValueError) as problem:
        raise BadJob(f"no id, epoch or token: {problem!r}") from problem


def read_job(document: dict[str, Any]) -> Job:
    """The job of a match answer; BadJob names what is wrong."""
    ticket = read_ticket(document)
    try:
        return Job(
            id=ticket.id,
            epoch=ticket.epoch,
            token=ticket.token,
            lease_s=float(document["lease_s"]),
            task_id=int(document.get("task_id") or 0),
            attempt_nr=int(document.get("attempt_nr") or 1),
            queue=str(document["queue"]),
            transformation=str(document["transformation"]),
            parameters=str(document.get("parameters") or ""),
            container=str(document.get("container") or ""),
            cores=int(document.get("cores") or 1),
            memory_mb=int(document.get("memory_mb") or 0),
            disk_mb=int(document.get("disk_mb") or 0),
            walltime_s=float(document.get("walltime_s") or 0),
            inputs=tuple(_input(entry) for entry in document.get("inputs") or ()),
            outputs=tuple(_output(entry) for entry in document.get("outputs") or ()),
            metadata_file=_file_name(document["metadata_file"]) if document.get("metadata_file") else "",
            log_max=int(document.get("log_max") or LOG_MAX),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise BadJob(f"{type(problem).__name__}: {problem}") from problem


def _is_remote(path: Path | None, root: StorageRoot | None, url: str) -> bool:
    """A directory is used where its root is there; else the server, if the storage has one."""
    return path is None or (bool(url) and root is not None and bool(root.fault()))


def _input(entry: dict[str, Any]) -> Input:
    size = entry.get("size")
    sources = tuple(_source(source) for source in entry.get("sources") or ())
    return Input(_file_name(entry["lfn"]), None if size is None else int(size), _checksum(entry.get("checksum")), sources)


def _source(entry: dict[str, Any]) -> Source:
    path, url = _path(entry), _address(entry.get("url"))
    root = _root(entry, path) if path and entry.get("root") else None
    return Source(path, root, str(entry.get("storage") or ""), url)


def _output(entry: dict[str, Any]) -> Output:
    kind = entry.get("type", "output")
    if kind not in ("output", "log"):
        raise BadJob(f"unknown type of output: {kind!r}")
    lfn, path = _file_name(entry["lfn"]), _path(entry)
    source = _file_name(entry["source_name"]) if entry.get("source_name") else ""
    source = "" if kind == "log" else source
    root = _root(entry, path) if path else None
    addresses = _address(entry.get("url")), _address(entry.get("remove_url"))
    if addresses[0] and not addresses[1]:
        raise BadJob(f"{lfn} has an address to write and none to remove it")
    streams = tuple(_stream(each, entry) for each in entry.get("streams") or ()) if kind == "log" else ()
    return Output(lfn, str(entry["storage"]), path, kind == "log", bool(entry.get("optional")), source, root, *addresses, streams)


def _stream(entry: dict[str, Any], log: dict[str, Any]) -> Output:
    """A stream of a log as an output: at the storage of the log."""
    place: dict[str, Any] = {name: log[name] for name in ("storage", "root", "mark") if name in log}
    return _output({**entry, **place, "type": "output", "source_name": _file_name(entry["stream"])})


def _path(entry: dict[str, Any]) -> Path | None:
    """The path of a copy, or None where it has only an address."""
    return None if entry.get("path") is None and entry.get("url") else _absolute(entry["path"])


def _address(value: object) -> str:
    """A signed address; empty where there is none. What it holds is never told."""
    if not value:
        return ""
    if (
        not isinstance(value, str)
        or not value.startswith(("http://", "https://"))
        or not (value.isascii() and value.isprintable())
    ):
        raise BadJob("not an http(s) address")
    return value


def _root(entry: dict[str, Any], path: Path) -> StorageRoot:
    """The root of the storage below which a file lies."""
    root = _absolute(entry["root"])
    if not path.is_relative_to(root) or path == root or ".." in path.parts:
        raise BadJob(f"{path} does not lie below {root}")
    return StorageRoot(str(entry.get("storage") or ""), root, str(entry.get("mark") or ""))


def _file_name(value: object) -> str:
    """A plain file name: it becomes a path in the working folder."""
    if not isinstance(value, str) or value in ("", ".", "..") or "/" in value or "\0" in value:
        raise BadJob(f"not a file name: {value!r}")
    return value


def _absolute(value: object) -> Path:
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value:
        raise BadJob(f"not an absolute path: {value!r}")
    return Path(value)


def _checksum(value: object) -> str | None:
    """adler32 as 8 lower-case hex digits; `ad:` and `adler32:` in front are taken off."""
    if not value:
        return None
    text = str(value).lower().rpartition(":")[2].rjust(8, "0")
    if len(text) != 8 or set(text) - set("0123456789abcdef"):
        raise BadJob(f"not an adler32: {value!r}")
    return text
