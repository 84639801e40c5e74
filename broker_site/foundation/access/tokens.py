"""The texts of tokens: random secrets that are stored as a digest, and signed job tokens that are not stored at all.

Not here: the database rows (`credentials`) and what a token permits (`permissions`).
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
from functools import lru_cache

from django.conf import settings

from broker_site.foundation.access.principal import JobClaim
from broker_site.foundation.kernel import clock

PREFIXES = {"user": "gbu_", "enrolment": "gbe_", "pilot": "gbp_", "child": "gbc_"}
"""Kind of a stored credential -> how its text begins, so that a leaked one is recognised by those who scan for secrets."""

JOB_PREFIX = "gbj_"
SHOWN = 12
"""Characters of a secret that may be displayed: the kind and 48 random bits; 208 bits stay unknown."""

_STORED = re.compile(r"gb[uepc]_[A-Za-z0-9_-]{43}", re.ASCII)
_NUMBER = r"(0|[1-9][0-9]{0,18})"
_JOB = re.compile(rf"gbj_({_NUMBER}\.{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:\.{_NUMBER})?)\.([0-9a-f]{{64}})", re.ASCII)


class BadToken(Exception):
    """A token that is not accepted; the text says why in words that may be told to its bearer."""


class RevokedToken(BadToken):
    """A token of ours that was revoked; `credential`: which, as it may be displayed."""

    def __init__(self, why: str, credential: str) -> None:
        super().__init__(why)
        self.credential = credential


def new_secret(kind: str) -> str:
    """A new secret of 256 random bits for a stored credential of this kind."""
    return PREFIXES[kind] + secrets.token_urlsafe(32)


def looks_stored(text: str) -> bool:
    """Whether the text has the form of a stored credential; others need not be looked up."""
    return _STORED.fullmatch(text) is not None


def digest(secret: str) -> str:
    """What is stored of a secret. One round of SHA-256 is enough: the secret is 256 random bits, not somebody's password."""
    return hashlib.sha256(secret.encode()).hexdigest()


def shown(secret: str) -> str:
    """The part of a secret that may be displayed and that an operator names it by."""
    return secret[:SHOWN]


def mint_job_token(job_id: int, epoch: int, seconds: float, *, pilot: int = 0, issued: int = 0) -> str:
    """A token for this job and epoch that lives `seconds` from now: the lease and the overlap of its renewal.

    `pilot` is the id of the pilot's credential (`Principal.credential`): with it the token dies with that credential. `issued`:
    when its lease got it, by which the ledger knows one that was replaced.
    """
    expires = math.ceil(clock.now().timestamp() + seconds)
    claim = f"{job_id}.{epoch}.{expires}.{pilot}.{issued}"
    return f"{JOB_PREFIX}{claim}.{_signature(_key(settings.SECRET_KEY), claim)}"


def read_job_token(text: str) -> JobClaim:
    """What a job token says, once its signature and its time are found good; else BadToken.

    The epoch is not judged here: it is the fence of the ledger, which answers an old one with a conflict.
    """
    match = _JOB.fullmatch(text)
    if match is None:
        raise BadToken("this is not a job token")
    claim, job_id, epoch, expires, pilot, issued, signature = match.groups()
    secrets_ = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    if not any(hmac.compare_digest(_signature(key, claim), signature) for key in map(_key, secrets_)):
        raise BadToken("the signature of the job token is wrong")
    if int(expires) <= clock.now().timestamp():
        raise BadToken("the job token has expired")
    return JobClaim(int(job_id), int(epoch), int(expires), int(pilot), int(issued or 0))


def _signature(key: hmac.HMAC, claim: str) -> str:
    mac = key.copy()  # `hmac.digest` lets other threads run, and it takes longer to get the turn back than to sign
    mac.update(claim.encode())
    return mac.hexdigest()


@lru_cache(maxsize=32)
def _key(secret: str) -> hmac.HMAC:
    """A key of our own: a signature made for another purpose with the same SECRET_KEY is worth nothing here."""
    return hmac.new(hmac.digest(secret.encode(), b"gridbroker job token 1", "sha256"), digestmod="sha256")
