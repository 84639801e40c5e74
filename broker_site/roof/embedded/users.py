"""Numeric users of an instance's own, for what shall not run as root: its PostgreSQL, the payloads of each slot.

They have no names. A number is chosen once for each purpose and kept in the instance's folder; it lies where neither people nor
services nor containers have theirs, and differs from folder to folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
from pathlib import Path

from broker_site.roof.embedded.place import NoPlace, locked, read_private, write_private
from broker_site.roof.embedded.process import Account

WIDE = (1_900_000_000, 200_000_000)
NARROW = (40_000, 19_000)
"""First number and how many: for machines, and for containers that map only 65,536 users."""


def own_user(folder: Path, purpose: str) -> Account:
    """The user of this purpose in the instance of this folder. Only root has a use for it."""
    with locked(folder / "users.lock"):
        kept = {name: uid for name, uid in read_private(folder / "users.json").items() if isinstance(uid, int)}
        if purpose not in kept:
            kept[purpose] = _choose(f"{folder.resolve()}:{purpose}", set(kept.values()))
            write_private(folder / "users.json", json.dumps(kept))
    return Account(f"user {kept[purpose]}", kept[purpose], kept[purpose])


def _choose(name: str, taken: set[int]) -> int:
    first, count = WIDE if _exists(sum(WIDE) - 1) else NARROW
    for attempt in range(100):
        digest = hashlib.sha256(os.fsencode(f"{name}:{attempt}")).digest()
        uid = first + int.from_bytes(digest[:8], "big") % count
        if uid not in taken and not _has_name(uid):
            return uid
    raise NoPlace(f"no free user number from {first} to {first + count}; set DATABASE_URL to use another server")


def _exists(uid: int) -> bool:
    """Whether this machine (this container) has such a user number at all."""
    try:
        maps = [[int(part) for part in line.split()] for line in Path("/proc/self/uid_map").read_text("ascii").splitlines()]
    except OSError:
        return True
    return any(inside <= uid < inside + length for inside, _, length in maps)


def _has_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
