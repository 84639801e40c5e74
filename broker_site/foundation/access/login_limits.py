"""How often somebody may try a password: so often from an address, so often for an account, so often on a device known for it.

A device on which the account signed in before has a signed cookie and a limit of its own, so that guesses of others keep nobody
out for ever. Tries are counted in Redis for all web processes together, and by each process alone while Redis does not answer.
What was refused is not counted, and a good password gives its try back.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import threading
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.conf import settings
from django.core import signing
from django.core.cache import cache
from django.http import HttpRequest, HttpResponseBase
from redis.exceptions import RedisError

from broker_site.foundation.access.counting import cache_answers, cache_failed
from broker_site.foundation.access.strangers import client_address

PER_ADDRESS, PER_ACCOUNT, PER_DEVICE = 10, 5, 5
WINDOW_S = 60
MOST_KEYS = 10_000
OTHERS = "others"
"""Stands for all further addresses or accounts when the memory of a process holds MOST_KEYS."""

COOKIE, SALT, DEVICE_S = "gridbroker_device", "gridbroker.device", 365 * 86_400


@dataclass(frozen=True, slots=True)
class Limit:
    """What is counted, and how much of it a window holds."""

    key: str
    most: int


def limits_of(request: HttpRequest, username: str) -> tuple[Limit, ...]:
    """What a try of this account's password by this request counts against."""
    account = account_digest(username)
    if device := _device(request, account):
        return (Limit(f"device:{device}", PER_DEVICE),)
    return (Limit(f"address:{client_address(request)}", PER_ADDRESS), Limit(f"account:{account}", PER_ACCOUNT))


def account_digest(username: str) -> str:
    """The account as keys and cookies name it; the same for each way to write a name."""
    return hashlib.sha256(unicodedata.normalize("NFKC", username).casefold().encode(errors="replace")).hexdigest()[:32]


def remember_device(request: HttpRequest, response: HttpResponseBase, username: str) -> None:
    """Mark the browser as one on which this account has signed in."""
    account = account_digest(username)
    if _device(request, account):
        return
    text = signing.dumps({"account": account, "device": secrets.token_hex(8)}, salt=SALT)
    secure = settings.SESSION_COOKIE_SECURE
    response.set_cookie(COOKIE, text, max_age=DEVICE_S, secure=secure, httponly=True, samesite="Lax")


def _device(request: HttpRequest, account: str) -> str:
    """The device's number when its cookie is for this account."""
    try:
        mark = signing.loads(request.COOKIES.get(COOKIE, ""), salt=SALT, max_age=DEVICE_S)
    except signing.BadSignature:
        return ""
    return str(mark["device"]) if mark["account"] == account else ""


def wait_s(before: int, now: int, elapsed: float, most: int) -> float:
    """Seconds until one more try fits into a sliding window, 0 when it fits at once.

    `before` and `now` are the tries of the last fixed window and of this one, of which `elapsed` seconds have passed. The tries
    of the last one count by the part of it that the sliding window still covers.
    """
    room = most - 1 - now
    if room >= 0:
        return max(0.0, (WINDOW_S * (1 - room / before) if before else 0.0) - elapsed)
    return WINDOW_S - elapsed + WINDOW_S * (1 - (most - 1) / now)


@dataclass(slots=True)
class _Windows:
    """The tries by key in the memory of this process: those of this window and of the last one."""

    number: int = 0
    before: dict[str, int] = field(default_factory=dict)
    now: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, number: int, key: str, step: int) -> tuple[int, int]:
        """Tries of this key in the window before `number` and in `number`, after one more (or, with -1, one less)."""
        with self.lock:
            if number != self.number:
                self.before = self.now if number == self.number + 1 else {}
                self.now, self.number = {}, number
            if key not in self.now and len(self.now) >= MOST_KEYS:
                key = f"{key.partition(':')[0]}:{OTHERS}"
            self.now[key] = max(0, self.now.get(key, 0) + step)
            return self.before.get(key, 0), self.now[key]


_windows = _Windows()


def forget() -> None:
    """Begin anew in this process."""
    global _windows
    _windows = _Windows()


def reserve(limits: Sequence[Limit]) -> int:
    """Count a try: 0, or, counting nothing, the seconds until one may come again."""
    now = time.time()
    number, elapsed = int(now // WINDOW_S), now % WINDOW_S
    wait = 0.0
    for limit in limits:
        before, tries = _count(number, limit.key, 1)
        wait = max(wait, wait_s(before, tries - 1, elapsed, limit.most))
    if wait:
        give_back(limits)
    return math.ceil(wait)


def give_back(limits: Sequence[Limit]) -> None:
    """Take back what `reserve` counted."""
    for limit in limits:
        _count(int(time.time() // WINDOW_S), limit.key, -1)


def _count(number: int, key: str, step: int) -> tuple[int, int]:
    """Tries of this key in the last window and in this one, after a step; also counted here, in case Redis goes away."""
    own = _windows.add(number, key, step)
    shared = _count_in_cache(number, key, step)
    return own if shared is None else shared


def _count_in_cache(number: int, key: str, step: int) -> tuple[int, int] | None:
    if not cache_answers():
        return None
    name = f"login:{key}:"
    try:
        cache.add(f"{name}{number}", 0, timeout=2 * WINDOW_S + 1)
        return int(cache.get(f"{name}{number - 1}", 0)), int(cache.incr(f"{name}{number}", step))
    except ValueError:  # the key ran out between two calls
        return None
    except (RedisError, OSError) as exc:
        cache_failed(exc)
        return None
