"""Addresses at a storage server that carry their own permission: one method on one name, for one attempt at a job, until a time.

The broker and movers sign with a key that only they and the server of that endpoint know. A server never sees a job's token, and
an address is worth nothing for another name, method, job, epoch or size. Not here: where keys come from, and sending anything.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote

MOST_BYTES = 10**14
"""The largest file of the wire; what an address for reading allows."""
LISTING = "LIST"
"""What is signed in place of a method for the list of all files, which is asked for by GET with `list=1`."""
_NUMBERS = ("job", "epoch", "size", "expires")
_LONGEST_NUMBER = 19


class NotGranted(Exception):
    """An address does not allow what is asked; the text says why without telling what it would allow."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What an address allows until `expires` (Unix time): a method on a file, its path below the root; empty: the storage itself.

    `job`, `epoch`: the attempt that it was made for, 0 for the broker's own. `size`: the most bytes of a file.
    """

    method: str
    name: str
    expires: int
    job: int = 0
    epoch: int = 0
    size: int = MOST_BYTES


def signature(key: str, grant: Grant) -> str:
    """The signature of a grant; the name comes last, since it alone may hold line ends."""
    numbers = f"{grant.job}\n{grant.epoch}\n{grant.size}\n{grant.expires}"
    return hmac.digest(key.encode(), f"{grant.method}\n{numbers}\n{grant.name}".encode(), "sha256").hex()


def signed_url(base: str, key: str, grant: Grant) -> str:
    """The address of a file at the server `base` (http(s)://host:port), signed with the key of its endpoint."""
    numbers = f"job={grant.job}&epoch={grant.epoch}&size={grant.size}&expires={grant.expires}"
    listed = "&list=1" if grant.method == LISTING else ""
    return f"{base}/{quote(grant.name, safe='/')}?{numbers}&sig={signature(key, grant)}{listed}"


def read_grant(method: str, name: str, query: str, keys: Iterable[str], now: float) -> Grant:
    """What an address allows, once one of the keys has signed it for this method and name. Raises NotGranted."""
    values = dict(parse_qsl(query))
    numbers = [values.get(each, "") for each in _NUMBERS]
    if not all(text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER for text in numbers):
        raise NotGranted("the address is not signed")
    job, epoch, size, expires = map(int, numbers)
    grant = Grant(LISTING if values.get("list") else method, name, expires, job, epoch, size)
    given = values.get("sig", "")
    if not given.isascii() or not any(hmac.compare_digest(signature(key, grant), given) for key in keys):
        raise NotGranted("the address is signed for something else, or with another key")
    if expires <= now:
        raise NotGranted("the address has expired")
    return grant
