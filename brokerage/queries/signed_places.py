"""Where a job reads and writes, as the wire has it: directories with their marks, and addresses at storage servers, signed.

The key of an endpoint is derived, never stored: from our secret key, its name and the number of its key.
"""

from __future__ import annotations

import hmac
import math
from functools import lru_cache
from typing import Any, NamedTuple

from django.conf import settings

from broker_site.foundation import gdpconfig
from broker_site.foundation.kernel import clock
from brokerage.pilot.joblog import CUT_LINE
from brokerage.pilot.signed_urls import MOST_BYTES, Grant, signed_url
from workqueues.rules.jobs.log_streams import STREAMS

MB = 10**6
LOG_STREAMS = len(STREAMS)
LEAST_LOG = 10 * MB
"""A log may be as large as this, and as its streams are, however little disk its job has."""
NO_WALLTIME_S = 4 * 86_400


class Endpoint(NamedTuple):
    """A storage endpoint as it is reached: its directory and address, each empty where there is none."""

    name: str
    path: str
    mark: str
    url: str
    key_number: int


class Holder(NamedTuple):
    """The attempt at a job that an address is made for; its limits, 0 where it has none."""

    job: int
    epoch: int
    walltime_s: float
    disk_mb: int


def storage_key(name: str, number: int) -> str:
    """The key that addresses of an endpoint are signed with, as its server has it in its file."""
    return _key(settings.SECRET_KEY, name, number)


@lru_cache(maxsize=4096)
def _key(secret: str, name: str, number: int) -> str:
    return hmac.digest(secret.encode(), f"gridbroker storage key 1\n{number}\n{name}".encode(), "sha256").hex()


def source_place(endpoint: Endpoint, path: str, holder: Holder) -> dict[str, Any]:
    """A copy of an input."""
    place = _directory(endpoint, path)
    if endpoint.url:
        place["url"] = _signed(endpoint, "GET", path, holder, "URL_LIFE")
    return place


def output_place(endpoint: Endpoint, path: str, holder: Holder) -> dict[str, Any]:
    """Where an output goes, and how it is removed again."""
    place = _directory(endpoint, path)
    if endpoint.url:
        place |= _addresses(endpoint, path, holder, _largest_output(holder))
    return place


def stream_place(endpoint: Endpoint, path: str, holder: Holder) -> dict[str, Any]:
    """Where a stream of a log goes as a file of its own, at the storage of the log, and how it is removed again."""
    place: dict[str, Any] = {} if endpoint.url and not endpoint.path else {"path": f"{endpoint.path}/{path}"}
    if endpoint.url:
        place |= _addresses(endpoint, path, holder, gdpconfig.value("storage", "LOG_MAX") + CUT_LINE)
    return place


def _addresses(endpoint: Endpoint, path: str, holder: Holder, most: int) -> dict[str, str]:
    """To write a file of so many bytes at most, and to remove it."""
    return {
        "url": _signed(endpoint, "PUT", path, holder, "URL_LIFE", most),
        "remove_url": _signed(endpoint, "DELETE", path, holder, "WITHDRAW_LIFE"),
    }


def _largest_output(holder: Holder) -> int:
    """Bytes that an output may have: what the disk of its job takes, and a log in any case what its streams have."""
    log: int = LEAST_LOG + LOG_STREAMS * gdpconfig.value("storage", "LOG_MAX")
    return max(holder.disk_mb * MB, log) if holder.disk_mb else MOST_BYTES


def _directory(endpoint: Endpoint, path: str) -> dict[str, Any]:
    name, root, mark, url, _ = endpoint
    if url and not root:
        return {"storage": name}
    return {"storage": name, "path": f"{root}/{path}", "root": root, "mark": mark}


def _signed(endpoint: Endpoint, method: str, path: str, holder: Holder, life: str, size: int = MOST_BYTES) -> str:
    """Good for as long as the job may run, and then so long as the key `life` says."""
    life_s = (holder.walltime_s or NO_WALLTIME_S) + gdpconfig.value("storage", life)
    expires = math.ceil(clock.now().timestamp() + life_s)
    grant = Grant(method, path, expires, holder.job, holder.epoch, size)
    return signed_url(endpoint.url, storage_key(endpoint.name, endpoint.key_number), grant)
