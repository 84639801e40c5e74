"""Where a private instance keeps what it has: `.gridbroker/<instance>/` of the working folder, locks and secrets included.

PostgreSQL refuses to run as root. Then a numeric user of the instance's own runs it (or the owner of the working folder), and if
that user cannot reach the working folder or the binaries, data and a copy of the binaries go to `/var/tmp/gridbroker-<hash of the
folder>`. What lies in the state folder is for its owner alone; where root runs all, other users can pass its folders, not read
them. No mode of any other folder is changed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import pwd
import secrets
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from broker_site.roof.embedded.process import Account

STATE = ".gridbroker"
ELSEWHERE = Path("/var/tmp")  # noqa: S108 - the folder made in it is checked to be ours alone
PASSED, CLOSED = 0o711, 0o700
"""Modes of folders: of those through which servers and payloads of other users reach theirs, and of all others."""
LONGEST_SOCKET = 100
"""Bytes that the path of a Unix socket may have; the system's limit is 104 or 108 with the final zero."""


class NoPlace(Exception):
    """The private servers cannot be put anywhere; the message says why and what helps."""


@dataclass(frozen=True, slots=True)
class Place:
    """Folders of one instance. `folder`: locks, secrets, logs; `servers`: data and sockets; `software`: PostgreSQL itself."""

    folder: Path
    servers: Path
    software: Path
    account: Account | None
    note: str
    """A line for the user when things are not where the manual says, else empty."""

    @property
    def data(self) -> Path:
        return self.servers / "pg"

    @property
    def sockets(self) -> Path:
        return self.servers / "run"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"


def make_folder(root: Path, instance: str) -> Path:
    """The instance's folder for locks, secrets and logs, made if need be; NoPlace when it cannot be or is another user's."""
    folder = root / STATE / instance
    _make(root / STATE)
    _make(folder)
    if (owner := folder.stat().st_uid) != os.geteuid():
        raise NoPlace(f"{folder} belongs to user {owner}, not to you ({os.geteuid()}); remove it, or run as that user")
    _make(folder / "logs")
    close_state(root / STATE, folder)
    return folder


def close_state(top: Path, folder: Path) -> None:
    """Let nobody else read what lies in an instance's folder, whoever made it with which mode."""
    passed = PASSED if os.geteuid() == 0 else CLOSED
    modes = {top: passed, folder: passed, **dict.fromkeys((folder / name for name in ("logs", "storage")), CLOSED)}
    for each, mode in modes.items():
        if each.is_dir() and not each.is_symlink() and each.stat().st_uid == os.geteuid():
            each.chmod(mode)
    for log in (folder / "logs").iterdir():
        if not log.is_symlink() and log.stat().st_uid == os.geteuid():
            log.chmod(0o640)


def make_passed(folder: Path, top: Path) -> None:
    """Make a folder below `top`, with those on the way; other users can pass them when we are root, and not read them."""
    for each in reversed((folder, *(parent for parent in folder.parents if parent.is_relative_to(top) and parent != top))):
        each.mkdir(exist_ok=True)
        each.chmod(PASSED if os.geteuid() == 0 else CLOSED)


def known_instances(root: Path) -> list[str]:
    """The names of the instances of a working folder that were started once, in order."""
    return sorted(each.parent.name for each in (root / STATE).glob("*/lock"))


def find_place(root: Path, instance: str, software: Path, own_user: Callable[[], Account]) -> Place:
    """Make the folders of `instance` under `root`, and choose where its database lives; NoPlace when nothing works.

    `own_user` gives the user for a server that root starts.
    """
    folder = make_folder(root, instance)
    if os.geteuid() != 0:
        return Place(folder, folder, software, None, "")
    account = _owner(root) or own_user()
    if _reaches(account, folder, software):
        return Place(folder, folder, software, account, "")
    shared = shared_folder(root)
    _make_own(shared)
    _make(shared / instance)
    copy = _copied(software, shared)
    if not _reaches(account, shared / instance, copy):
        raise NoPlace(f"the user {account.name} cannot run PostgreSQL from {shared}; set DATABASE_URL to use another server")
    note = f"root cannot run PostgreSQL and {account.name} cannot reach {root}: data and binaries are in {shared}"
    return Place(folder, shared / instance, copy, account, note)


def shared_folder(root: Path) -> Path:
    """Where the servers of `root` live when the unprivileged user cannot reach it."""
    return ELSEWHERE / f"gridbroker-{hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:16]}"


def give(path: Path, account: Account | None) -> None:
    """Hand a file or folder that we just made to the user who runs the server."""
    if account:
        os.chown(path, account.uid, account.gid)


def give_tree(top: Path, account: Account) -> None:
    """Hand over a folder with all below it. NoPlace for a file with a second name: somebody may have linked to one of ours."""
    for _, folders, files, at in os.fwalk(top, follow_symlinks=False):
        for name in (*folders, *files):
            status = os.stat(name, dir_fd=at, follow_symlinks=False)
            if not stat.S_ISDIR(status.st_mode) and status.st_nlink > 1:
                raise NoPlace(f"{top} holds a file with a second name ({name}); set DATABASE_URL to use another server")
            os.chown(name, account.uid, account.gid, dir_fd=at, follow_symlinks=False)
    give(top, account)


def open_private(path: Path) -> IO[str]:
    """Open a file that only we can read to append to it; made if need be."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8")


def _make(folder: Path) -> None:
    """Make one folder, passable for the unprivileged user when we are root; one that exists stays as it is."""
    try:
        folder.mkdir()
    except FileExistsError:
        return
    except OSError as error:
        raise NoPlace(f"cannot make {folder}: {error.strerror}") from error
    folder.chmod(PASSED if os.geteuid() == 0 else CLOSED)


def _make_own(folder: Path) -> None:
    """Make a folder in a place that everybody may write to, or see that the one there is root's alone."""
    _make(folder)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise NoPlace(f"{folder} exists but is not a folder that only root can write to; remove it, or set DATABASE_URL")


def _owner(root: Path) -> Account | None:
    """The owner of the working folder, if that is a user other than root."""
    owner = root.stat().st_uid
    try:
        user = pwd.getpwuid(owner)
    except KeyError:
        return None
    return Account(user.pw_name, user.pw_uid, user.pw_gid) if owner else None


def named_user() -> Account:
    """A user other than root who has a name: `initdb` asks for that, the server does not."""
    for name in ("nobody", "daemon", "postgres"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        if user.pw_uid:
            return Account(name, user.pw_uid, user.pw_gid)
    raise NoPlace("PostgreSQL refuses to run as root, and there is no unprivileged user; set DATABASE_URL to use another server")


def _reaches(account: Account, folder: Path, software: Path) -> bool:
    """Whether the user can enter the folder and run the binary there; tried, not guessed from modes."""
    try:
        trial = subprocess.run(
            ["/bin/sh", "-c", 'cd "$1" && exec "$2" --version', "sh", str(folder), str(software / "bin" / "postgres")],
            user=account.uid,
            group=account.gid,
            extra_groups=[],
            env={"LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=30,
            check=False,
        )
    except OSError as error:
        raise NoPlace(
            f"cannot run anything as {account.name}: {error.strerror}; set DATABASE_URL to use another server"
        ) from error
    return trial.returncode == 0


def _copied(software: Path, shared: Path) -> Path:
    """A copy of PostgreSQL's installation and the libraries that the wheel lays beside it; made once per version."""
    libraries = software.parent.parent / f"{software.parent.name}.libs"
    stamp = hashlib.sha256(f"{software.resolve()} {(software / 'bin' / 'postgres').stat().st_mtime_ns}".encode()).hexdigest()[:12]
    target = shared / f"software-{stamp}"
    # The binaries find their libraries relative to themselves, so the copy keeps the relative places.
    copy = target / software.parent.name / software.name
    if target.exists():
        return copy
    fresh = Path(f"{target}.{secrets.token_hex(4)}")
    shutil.copytree(software, fresh / software.parent.name / software.name, symlinks=True)
    if libraries.exists():
        shutil.copytree(libraries, fresh / libraries.name, symlinks=True)
    for part in (fresh, *(p for p in fresh.rglob("*") if not p.is_symlink())):
        part.chmod(part.stat().st_mode & 0o755 | (0o755 if part.is_dir() else 0o444))
    try:
        fresh.rename(target)
    except OSError:
        shutil.rmtree(fresh)  # another instance was quicker
    return copy


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file alone; the system lets go of it when the process ends, however it does."""
    with open_private(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_private(path: Path, text: str) -> None:
    """Write a file that only we can read, whole or not at all."""
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def read_private(path: Path) -> dict[str, object]:
    """The JSON object that `write_private` wrote; empty when it is missing."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
