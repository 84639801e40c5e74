"""Logs of jobs in pieces: the text of one stretch of each stream, whatever the log holds and however large it is.

A log is an archive of streams (.tgz), or one plain file; beside an archive its streams may stand as plain files. At no time is
more of it in memory than the pieces and one block. A plain file is read where the piece is; an archive must be unpacked up to
there, which a page does for `LOG_UNPACK_MAX` bytes.
"""

from __future__ import annotations

import os
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from gzip import GzipFile
from typing import IO, Protocol

from monitoring.templatetags.show import size as in_words

PIECE = 64_000
"""Bytes of a stream that a page shows at once."""
MOST_STREAMS = 10
REPORTED = "The end of the log, which came with the report"
NO_SIGN = "\ufffd"
_LONGEST_NAME = 200
_MOST_HEADS = 1_000
_LARGEST_HEAD = 1_000_000
"""Bytes that the head of a file in an archive may unpack to, with its names and attributes: they are held in memory."""
_ZIPPED = b"\x1f\x8b"
_CHARACTER = 3
"""Bytes of a character of UTF-8 after its first one, at most."""
_NO_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufffd]")
"""Controls of terminals, signs that turn the direction of what follows, and what is no UTF-8."""
_MOSTLY = 0.3


@dataclass(frozen=True, slots=True)
class Stream:
    """One file of a log, and the piece of it from byte `begin` to `end` as text. `size`: all of it.

    `reach`: where the last piece begins that can be read; there are later ones where the stream goes too far in its archive.
    """

    name: str
    size: int
    begin: int
    end: int
    text: str
    reach: int

    @property
    def shown_name(self) -> str:
        """Its name, which may be any bytes of any length, for people."""
        return legible(self.name[:_LONGEST_NAME].encode("utf-8", "replace"))

    @property
    def is_whole(self) -> bool:
        """Whether the piece is all of it."""
        return self.begin == 0 and self.end == self.size

    @property
    def unreached(self) -> bool:
        """Whether its last piece is out of reach."""
        return self.reach < last_begin(self.size)

    @property
    def earlier(self) -> int | None:
        """Where the piece before it begins; None: it is the first."""
        return max(self.begin - PIECE, 0) if self.begin else None

    @property
    def later(self) -> int | None:
        """Where the piece after it begins; None: there is none within reach, or it broke off before the size in its head."""
        broken_off = self.end - self.begin < PIECE - _CHARACTER
        return self.end if self.end < self.size and not broken_off and (self.end <= self.reach or not self.unreached) else None

    @property
    def looks_binary(self) -> bool:
        """Whether so much of the piece is no text that nobody would read it."""
        return self.text.count(NO_SIGN) > _MOSTLY * len(self.text)


@dataclass(frozen=True, slots=True)
class Pieces:
    """The streams of a log, standard error first. `fault`: why there may be more in it than these; empty: they are all.

    `plain`: they stand as files of their own.
    """

    streams: list[Stream] = field(default_factory=list)
    fault: str = ""
    plain: bool = False


class Readable(Protocol):
    """What can be read from any place on."""

    def seek(self, offset: int, /) -> object:
        """Read on from this byte."""

    def read(self, size: int, /) -> bytes:
        """So many bytes, fewer at the end."""


def last_begin(size: int) -> int:
    """Where the last piece of a stream begins."""
    return max(size - PIECE, 0)


def pieces(file: IO[bytes], name: str, begins: Mapping[str, int], most: int) -> Pieces:
    """Of each stream the piece that `begins` says (name -> byte), else its last; of an archive `most` bytes are unpacked.

    A begin too far behind is one of the last piece. OSError, EOFError, tarfile.TarError or zlib.error where nothing can be read.
    """
    zipped = file.read(len(_ZIPPED)) == _ZIPPED
    file.seek(0)
    if not zipped:
        size = os.fstat(file.fileno()).st_size
        return Pieces([plain_piece(file, name, size, begins)])
    streams, fault = list[Stream](), ""
    try:
        for stream in _of_archive(file, begins, most):
            streams.append(stream)
    except (OSError, EOFError, tarfile.TarError, zlib.error) as problem:
        if not streams:
            raise
        fault = f"The rest of the archive was not read: {problem}."
    return Pieces(in_order(streams), fault)


def plain_piece(file: Readable, name: str, size: int, begins: Mapping[str, int]) -> Stream:
    """Of a plain file of this size the piece that `begins` says, else its last."""
    return _stream(file, name, size, 0, last_begin(size), begins.get(name))


def in_order(streams: Iterable[Stream]) -> list[Stream]:
    """As they are shown: standard error, standard output, others."""
    return sorted(streams, key=lambda each: (each.name != "stderr", each.name != "stdout"))


def end_with_report(text: str) -> Stream:
    """The end of a log that came with the report of its job."""
    content = text.encode("utf-8", "replace")
    return Stream(REPORTED, len(content), 0, len(content), legible(content), last_begin(len(content)))


def legible(content: bytes) -> str:
    """The bytes as a text for a page or a terminal: what is no sign of a text, or steers where it is shown, is replaced."""
    return _NO_TEXT.sub(NO_SIGN, content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n"))


def _of_archive(file: IO[bytes], begins: Mapping[str, int], most: int) -> Iterator[Stream]:
    """Its streams in its own order, as far as they are within reach. Raises what tells why there may be more."""
    with _Unpacked(file) as unpacked, _archive(unpacked) as archive:
        heads = shown = 0
        while (entry := _next(archive)) is not None:
            heads += 1
            if shown == MOST_STREAMS or heads > _MOST_HEADS:
                raise tarfile.ReadError(f"a page shows {MOST_STREAMS} files of it at most")
            data, after = entry.offset_data, archive.offset
            unpacked.most = max(most, data) + PIECE + _CHARACTER
            if entry.isreg() and not entry.issparse():
                reach = max(min(last_begin(entry.size), most - data), 0)
                name = entry.name.encode("utf-8", "backslashreplace").decode()  # an address carries no other
                begin = begins.get(name, 0 if reach < last_begin(entry.size) else None)
                yield _stream(unpacked, name, entry.size, data, reach, begin)
                shown += 1
            if after > most:
                raise tarfile.ReadError(f"a page unpacks {in_words(most)} of it at most")
            unpacked.seek(after)
            unpacked.most = after + _LARGEST_HEAD
            vars(archive)["members"].clear()  # it would keep the heads of all


def _stream(file: Readable, name: str, size: int, data: int, reach: int, begin: int | None) -> Stream:
    """A piece of a stream whose bytes begin at `data` of the file, cut between characters."""
    furthest = reach if reach < last_begin(size) else size - 1
    begin = reach if begin is None or begin > furthest else begin
    file.seek(data + begin)
    content = file.read(min(PIECE + _CHARACTER, size - begin))
    first, last = (_cut(content, 0) if begin else 0), _cut(content, PIECE)
    return Stream(name, size, begin + first, begin + last, legible(content[first:last]), reach)


def _cut(content: bytes, at: int) -> int:
    """Where at or after a byte a character begins."""
    end = min(at + _CHARACTER, len(content))
    while at < end and content[at] & 0xC0 == 0x80:
        at += 1
    return min(at, len(content))


def _archive(unpacked: _Unpacked) -> tarfile.TarFile:
    with _told():
        return tarfile.TarFile(fileobj=unpacked)


def _next(archive: tarfile.TarFile) -> tarfile.TarInfo | None:
    with _told():
        entry = archive.next()
    if entry is not None and entry.size < 0:
        raise tarfile.ReadError("a file in it has a size below zero")
    return entry


@contextmanager
def _told() -> Iterator[None]:
    """Heads that were made to break their reader are a broken archive."""
    try:
        yield
    except (ValueError, OverflowError, RecursionError, LookupError) as problem:
        raise tarfile.ReadError("its heads are broken") from problem


class _Unpacked(GzipFile):
    """What an archive unpacks to, forwards only and up to the byte `most`: a few bytes on storage can stand for any number."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(fileobj=file)
        self.most = _LARGEST_HEAD

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0 or self.tell() + size > self.most:
            raise OSError(f"the head of a file in it unpacks to more than {in_words(_LARGEST_HEAD)}")
        return super().read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_CUR and offset == 0:  # so `tell` asks
            return super().seek(0, whence)
        if whence != os.SEEK_SET or offset < self.tell():
            raise OSError("it leads back to what was read")
        if (there := super().seek(offset)) < offset:
            raise EOFError("it ends too early")
        return there
