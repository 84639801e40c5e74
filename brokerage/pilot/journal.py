"""What a job wrote to storage before it was settled, so that somebody can remove it again if it never is.

One file per attempt, `<job>.<epoch>.journal`, in a folder shared by the pilots of a queue. Its writer holds a lock on it as long
as it lives (the kernel drops the lock of a killed one); a journal whose lock is free belongs to a dead pilot. A line is written
before each change on storage, so a kill at any moment leaves at most files that the journal names. A file is only removed when it
is the very one that was written.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from brokerage.pilot import remote_storage
from brokerage.pilot.copying import Identity, identity
from brokerage.pilot.storage_root import StorageRoot

SUFFIX = ".journal"
EMPTY_S = 60.0
"""An empty journal older than this is litter of a pilot that was killed before it wrote anything."""
BATCH = 100


Entries = list[dict[str, object]]
LeftJournal = tuple[tuple[int, int], tuple[Path, Entries]]


class Journal:
    """The open journal of a running attempt."""

    def __init__(self, folder: Path, name: str) -> None:
        """Create and lock it; FileExistsError when this attempt has one already."""
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / (name + SUFFIX)
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)  # at most a cleaner that looks into it just now is waited for
        self._entries: Entries = []

    def will_write(self, temporary: Path, root: StorageRoot) -> None:
        """About to create the file `temporary` on the storage of this root."""
        self._add({"temporary": str(temporary), "root": _written(root)})

    def will_publish(self, temporary: Path, path: Path, written: Identity, root: StorageRoot) -> None:
        """About to give the whole file `temporary` its final name `path`."""
        self._add({"temporary": str(temporary), "path": str(path), "identity": asdict(written), "root": _written(root)})

    def will_send(self, storage: str, url: str) -> None:
        """About to send a file to a server, which keeps it as a part. `url`: the address to remove it."""
        self._add({"storage": storage, "url": url, "etag": ""})

    def will_name(self, storage: str, url: str, etag: str) -> None:
        """About to have the part with this tag get its name."""
        self._add({"storage": storage, "url": url, "etag": etag})

    def published(self, path: Path, current: Identity | None) -> bool:
        """True when the file that now has the name `path` is one that this attempt wrote."""
        return current is not None and any(
            e.get("path") == str(path) and e.get("identity") == asdict(current) for e in self._entries
        )

    def discard(self) -> None:
        """Remove everything written from storage, then the journal.

        OSError when storage refuses or is down, the journal is then kept for a cleaner.
        """
        try:
            _remove(self._entries, published_too=True)
        except OSError:
            self.leave()
            raise
        self.settle()

    @property
    def entries(self) -> int:
        """How many it has now."""
        return len(self._entries)

    def take_back(self, since: int) -> None:
        """Remove from storage what the entries after the first `since` tell of; the others stay. OSError as with `discard`."""
        _remove(self._entries[since:], published_too=True)

    def settle(self) -> None:
        """The outputs are settled (or removed): nothing is left to remember."""
        self.path.unlink(missing_ok=True)
        self.leave()

    def leave(self) -> None:
        """Unlock without removing: whoever cleans next asks the server what became of the job."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _add(self, entry: dict[str, object]) -> None:
        self._entries.append(entry)
        os.write(self._fd, json.dumps(entry).encode() + b"\n")


def clean(folder: Path, outcomes: Callable[[list[tuple[int, int]]], dict[tuple[int, int], str]]) -> list[str]:
    """Tidy up after dead pilots: one line for each journal that was dealt with.

    `outcomes` maps (job, epoch) pairs to "finished", "live" or "gone" (see the wire); pairs that it leaves out are looked at
    another time.
    """
    with contextlib.ExitStack() as locks:
        journals = dict(_left_behind(folder, locks))
        lines: list[str] = []
        pairs = list(journals)
        for start in range(0, len(pairs), BATCH):
            batch = pairs[start : start + BATCH]
            answers = outcomes(batch)
            settled = [pair for pair in batch if answers.get(pair) in ("finished", "gone")]
            lines += [_close(pair, *journals[pair], gone=answers[pair] == "gone") for pair in settled]
        return lines


def _close(pair: tuple[int, int], path: Path, entries: Entries, *, gone: bool) -> str:
    """Remove what has to go and the journal itself; in words. A storage that refuses is tried again another time."""
    about = f"job {pair[0]}.{pair[1]} of an ended pilot {'is gone' if gone else 'had finished'}"
    try:
        removed = _remove(entries, published_too=gone)
    except OSError as problem:
        return f"{about}: cannot clean yet: {problem}"
    path.unlink()
    return f"{about}: {removed} files removed from storage"


def _left_behind(folder: Path, locks: contextlib.ExitStack) -> Iterator[LeftJournal]:
    """Journals whose writer is dead, locked until `locks` is closed: ((job, epoch), (path, entries))."""
    try:
        paths = sorted(folder.iterdir())
    except FileNotFoundError:
        return
    for path in paths:
        job, _, epoch = path.name.removesuffix(SUFFIX).partition(".")
        if path.suffix != SUFFIX or not (job.isdigit() and epoch.isdigit()):
            continue
        content = _lock_and_read(path, locks)
        if content:
            yield (int(job), int(epoch)), (path, _parse(content))


def _lock_and_read(path: Path, locks: contextlib.ExitStack) -> bytes:
    """The content, locked.

    Empty when its writer lives, it has gone meanwhile, or nothing was written (old empty ones are removed).
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return b""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file.fileno()).st_nlink == 0:
            content = b""
        else:
            content = file.read()
            if not content and time.time() - os.fstat(file.fileno()).st_mtime > EMPTY_S:
                path.unlink()
    except BlockingIOError:
        content = b""
    if content:
        locks.enter_context(file)
    else:
        file.close()
    return content


def _parse(content: bytes) -> Entries:
    """Entries in order; a last line cut short by a kill announces nothing that was done."""
    return [entry for line in content.splitlines() if (entry := _entry(line)) is not None]


def _entry(line: bytes) -> dict[str, object] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _written(root: StorageRoot) -> dict[str, str]:
    return {"name": root.name, "path": str(root.path), "mark": root.mark}


def _root(entry: dict[str, object]) -> StorageRoot | None:
    """The root of the storage an entry speaks of; None in a journal that an older pilot wrote."""
    match entry.get("root"):
        case {"name": str(name), "path": str(path), "mark": str(mark)}:
            return StorageRoot(name, Path(path), mark)
    return None


def _remove(entries: Entries, *, published_too: bool) -> int:
    """Remove temporary files, and published ones that still are the files written, the last first; how many were there.

    A log goes after its streams that way: they never stand beside the log of a later attempt.
    Raises StorageDown when their storage is: that they are not found then means nothing.
    """
    with contextlib.ExitStack() as roots:
        for root in {root for entry in entries if (root := _root(entry)) is not None}:
            roots.enter_context(root.opened())
        removed = sum(_remove_entry(entry, published_too=published_too) for entry in reversed(entries))
    return removed + _remove_sent(entries, published_too=published_too)


def _remove_sent(entries: Entries, *, published_too: bool) -> int:
    """The same for what was sent to servers. An address that is not good any more removes nothing: nobody could ever use it."""
    sent = {str(entry["url"]): (str(entry.get("storage")), str(entry.get("etag") or "")) for entry in entries if entry.get("url")}
    removed = 0
    for url, (storage, etag) in reversed(sent.items()):
        with contextlib.suppress(FileNotFoundError, PermissionError):
            removed += remote_storage.delete(storage, url, etag if published_too else "")
    return removed


def _remove_entry(entry: dict[str, object], *, published_too: bool) -> int:
    removed = 0
    temporary, path = entry.get("temporary"), entry.get("path")
    if isinstance(temporary, str):
        removed += _unlink(Path(temporary))
    if published_too and isinstance(path, str):
        current = identity(Path(path))
        if current is not None and asdict(current) == entry.get("identity"):
            removed += _unlink(Path(path))
    return removed


def _unlink(path: Path) -> int:
    try:
        path.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return 0
    return 1
