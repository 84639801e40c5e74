"""Who is asking: the value that every guard, view and audit row speaks of. No database here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from uuid import UUID

if TYPE_CHECKING:
    from broker_site.foundation.access.models import User

Kind = Literal["anonymous", "user", "enrolment", "pilot", "child", "job"]
"""What a principal is, and so which permissions it can have at all."""


@dataclass(frozen=True, slots=True)
class JobClaim:
    """What a job token says: this job, this epoch of its lease, until `expires` (seconds since 1970, UTC).

    `pilot` is the id of the pilot credential that the job was leased with, 0 if the token does not say. `issued`: when its lease
    got this token, in the same seconds; 0 for tokens of earlier releases.
    """

    job_id: int
    epoch: int
    expires: int
    pilot: int = 0
    issued: int = 0


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller, or nobody (`ANONYMOUS`).

    `roles` maps a VO to the roles held there, read from the database for this very request. `site`, `queues` and `vo` bind an
    enrolment secret or a pilot to its place, and `vo` a child broker; an empty `vo` there means any. Their `pilot_kind` is
    generic or private; a private pilot does the work of `owner` in `owner_group` only (empty: in any group). `subject` is the
    pilot's id. `credential` and `prefix` name the stored credential that was shown, if any; `prefix` is the part of it that may
    be displayed. `limited`: that of a user has less than the user: one VO, or some roles.
    """

    kind: Kind
    name: str
    user: User | None = None
    superuser: bool = False
    roles: Mapping[str, frozenset[str]] = field(default_factory=dict)
    site: str = ""
    queues: tuple[str, ...] = ()
    vo: str = ""
    pilot_kind: str = ""
    owner: str = ""
    owner_group: str = ""
    subject: UUID | None = None
    credential: int | None = None
    prefix: str = ""
    job: JobClaim | None = None
    limited: bool = False

    @property
    def queue(self) -> str:
        """The computing queue where there is but one, as of each pilot; else empty."""
        return self.queues[0] if len(self.queues) == 1 else ""

    @property
    def private(self) -> bool:
        """Whether it is bound to the work of one owner."""
        return self.pilot_kind == "private"

    @property
    def key(self) -> str:
        """A short text that is the same for each call with the same credential: what limits are counted by."""
        if self.credential is not None:
            return f"credential:{self.credential}"
        if self.job is not None:
            return f"job:{self.job.job_id}"
        return f"user:{self.user.pk}" if self.user is not None else "anonymous"


ANONYMOUS = Principal("anonymous", "anonymous")
SYSTEM = Principal("anonymous", "system")
"""Acts of operator commands and agents, for the audit; it has no permission on any route."""
