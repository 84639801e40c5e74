"""The streams of a job's log as plain files beside its archive: how they are called. Everyone who writes, reads, keeps or removes
them has their names from here, and so has what keeps other outputs from being called so.

No row tells of them: they stand where the archive stands, as long as it does, and are missing where a pilot could not store them,
or did not know of them.
"""

from __future__ import annotations

from typing import Literal, get_args

Stream = Literal["pilot.log", "stdout", "stderr"]
"""What a log is made of, as its archive calls it."""
STREAMS: tuple[Stream, ...] = get_args(Stream)
_ENDINGS = tuple(f".{stream}" for stream in STREAMS)


def stream_file(log: str, stream: str) -> str:
    """The name, or path, of a stream of the log of this name, or path."""
    return f"{log}.{stream}"


def stream_files(log: str) -> list[str]:
    """Those of all its streams."""
    return [stream_file(log, stream) for stream in STREAMS]


def log_of(file: str) -> str:
    """The log of which a file would be a stream by its name; empty where it is called otherwise."""
    return next((file.removesuffix(ending) for ending in _ENDINGS if file.endswith(ending)), "")
