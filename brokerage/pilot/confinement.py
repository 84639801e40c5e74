"""What a payload may do besides its work: nothing, as far as the system lets the pilot see to it.

A pilot that runs as root gives its payloads a numeric user of their own; where that user could not reach what it needs, it sees
the closed folders on the way as holding nothing else. Another pilot may give them a user namespace, in which all files but the
working folder are read-only and some folders are empty; the processes of the pilot's user can still be signalled.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

_NEW_USER, _NEW_MOUNTS, _NEW_IPC = 0x10000000, 0x00020000, 0x08000000
_NO_SUID, _NO_DEVICES, _RECURSIVE, _BIND, _PRIVATE = 0x2, 0x4, 0x4000, 0x1000, 0x40000
_MOUNT_SETATTR = 442
_FROM_HERE, _WHOLE_TREE, _READ_ONLY = -100, 0x8000, 0x1
OWN_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a new one, which only the payload sees

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns", ctypes.c_uint64),
    )


def become(uid: int, needed: Sequence[str]) -> None:
    """Go on as this user, of no group but its own, for good. The folders `needed` are there for it.

    OSError where the system does not allow it. To be called by a process of one thread.
    """
    if closed := {each: top for each in needed if (top := _closed(Path(each)))}:
        _check(_libc.unshare(_NEW_MOUNTS))
        _mount(None, "/", None, _RECURSIVE | _PRIVATE)
        sources = {each: os.open(each, os.O_PATH | os.O_DIRECTORY) for each in closed}
        for top in sorted(set(closed.values())):
            _mount("tmpfs", str(top), "tmpfs", _NO_SUID | _NO_DEVICES, "mode=0711,size=1m")
        for each, source in sources.items():
            for folder in (*reversed(Path(each).parents), Path(each)):
                if folder.is_relative_to(closed[each]) and folder != closed[each]:
                    folder.mkdir(exist_ok=True)
                    if folder != Path(each) and not folder.is_mount():
                        folder.chmod(0o711)  # whatever the umask
            _mount(f"/proc/self/fd/{source}", each, None, _BIND | _RECURSIVE)
            os.close(source)
        os.chdir(Path.cwd())
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def confine(folder: str, hidden: Sequence[str]) -> None:
    """Enter a user namespace in which only `folder` can be written to and the folders `hidden` are empty.

    OSError where the system does not allow it. To be called by a process of one thread.
    """
    uid, gid = os.geteuid(), os.getegid()
    _check(_libc.unshare(_NEW_USER | _NEW_MOUNTS | _NEW_IPC))
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1", encoding="ascii")
    work = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    _mount(None, "/", None, _RECURSIVE | _PRIVATE)
    _set_attributes("/", set_=_READ_ONLY, tree=True)
    for each in (OWN_SHARED_MEMORY, *hidden):
        if Path(each).is_dir():
            _mount("tmpfs", each, "tmpfs", _NO_SUID | _NO_DEVICES)
    Path(folder).mkdir(parents=True, exist_ok=True)  # it may have lain in a hidden one
    _mount(f"/proc/self/fd/{work}", folder, None, _BIND)
    _set_attributes(folder, clear=_READ_ONLY)
    os.close(work)
    os.chdir(folder)


def python_folders() -> list[str]:
    """The folders of this Python, of its virtual environment too, as they are named and where they are."""
    named = [Path(sys.executable).absolute().parents[1], Path(sys.prefix), Path(sys.base_prefix)]
    return list(dict.fromkeys(str(path) for each in named for path in (each, each.resolve())))


def _closed(path: Path) -> Path | None:
    """The uppermost folder above `path` that others cannot pass."""
    return next((each for each in reversed(path.parents) if not each.stat().st_mode & stat.S_IXOTH), None)


def give_tree(folder: Path, uid: int) -> None:
    """Make everything in a folder that the pilot has filled the payload's own."""
    for path in (folder, *_below(folder)):
        os.chown(path, uid, uid, follow_symlinks=False)


def _below(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield Path(root) / name


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    names = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    _check(_libc.mount(*names[:3], ctypes.c_ulong(flags), names[3]))


def _set_attributes(path: str, *, set_: int = 0, clear: int = 0, tree: bool = False) -> None:
    attributes = _MountAttributes(set_, clear, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    flags = _WHOLE_TREE if tree else 0
    _check(_libc.syscall(_MOUNT_SETATTR, _FROM_HERE, os.fsencode(path), flags, ctypes.byref(attributes), size))


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def main(arguments: Sequence[str]) -> int:
    """Try it: `python -m brokerage.pilot.confinement UID FOLDER...` as root, `... FOLDER` as another user. 0: it can be done."""
    try:
        if os.geteuid() == 0:
            become(int(arguments[0]), [*python_folders(), *arguments[1:]])
            reached = all(os.access(each, os.R_OK | os.X_OK) for each in (sys.executable, *arguments[1:]))
            return 0 if reached else 1
        confine(arguments[0], ())
    except OSError as error:
        print(error.strerror, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
