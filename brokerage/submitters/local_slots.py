"""How local pilots are started: the file that GRIDBROKER_LOCAL_PILOTS names, and the secrets with which they enrol."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import BaseModel, Field, ValidationError

from broker_site.foundation.access.credentials import issue_enrolment
from broker_site.foundation.access.models import Credential
from broker_site.foundation.access.tokens import digest
from broker_site.foundation.outside_data import STRICT, problems

Folder = Annotated[str, Field(pattern="^/")]


class LocalSlots(BaseModel):
    """The file: server, folders (absolute), how many pilots run at a time, and how payloads are kept apart.

    `payload_uids`: a user for each slot, where the worker is root; `hide`: folders that payloads do not see, where they get a
    user namespace.
    """

    model_config = STRICT

    server: Annotated[str, Field(pattern="^https?://")]
    software: Folder
    work: Folder
    enrolments: Folder
    slots: Annotated[int, Field(ge=1, le=1000)] = Field(default_factory=lambda: os.cpu_count() or 1)
    payload_uids: list[Annotated[int, Field(ge=1)]] = []
    hide: list[Folder] = []

    @classmethod
    def read(cls, file: Path) -> LocalSlots:
        """ValueError, which names each field and what is wrong with it."""
        try:
            found = cls.model_validate_json(file.read_bytes())
        except OSError as error:
            raise ValueError(f"{file} cannot be read: {error.strerror}") from None
        except ValidationError as error:
            raise ValueError("; ".join(f"{p.field}: {p.message}" for p in problems(error, cls))) from None
        if found.payload_uids and len(found.payload_uids) < found.slots:
            raise ValueError(f"payload_uids: {len(found.payload_uids)} users are fewer than the {found.slots} slots")
        return found


def enrolment_file(folder: Path, queue: str, site: str) -> Path:
    """The file with the enrolment secret of local pilots of a queue; a new secret when there is none that is still good."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / quote(queue, safe="")
    if not (file.exists() and is_valid(file.read_text(encoding="utf-8").strip())):
        _write_private(file, issue_enrolment(queue, site=site, note="local pilots").text + "\n")
    return file


def is_valid(text: str) -> bool:
    """Whether this is a credential that the database knows and nobody has revoked."""
    rows: Any = Credential.objects.filter(secret=digest(text), revoked_at__isnull=True, expires_at__isnull=True)
    return bool(text) and bool(rows.exists())


def _write_private(file: Path, text: str) -> None:
    fresh = file.with_name(f"{file.name}.{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:
        out.write(text)
    fresh.replace(file)
