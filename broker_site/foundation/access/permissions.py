"""What may be done, by which kind of principal and in which role. Everything else about rights derives from this table and from
what apps add to PERMISSIONS when they are ready: `workqueues` adds the rights to command tasks.

No database and no HTTP here: a principal carries its roles, guards ask these functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Q

from broker_site.foundation.access.principal import Kind, Principal
from broker_site.foundation.access.roles import PRODUCTION, ROLES
from broker_site.foundation.kernel.registry import Registry

OPEN = "open"
"""Stands where a permission stands: a public route."""
ADMIN = "admin"
"""Stands where a permission stands: Django's admin asks its own site and models."""

READERS = " ".join(ROLES)

_TABLE = f"""
# permission    | kinds     | roles in the VO       | notes
task:submit     | user      | submitter             | audited nosuper
task:produce    | user      | production            | audited nosuper
task:look       | user      | owner operator        | audited
queue:look      | user      | operator              | audited
share:look      | user      | operator share-editor | audited
task:read       | user      | {READERS}             |
job:read        | user      | {READERS}             |
job:rebroker    | user      | operator              | audited
job:kill        | user      | owner operator        | audited
job:retry       | user      | owner operator        | audited
token:own       | user      | {READERS}             | audited
bulk:make       | user      | owner operator production | audited
bulk:read       | user      | {READERS}             |
transfer:read   | user      | {READERS}             |
transfer:retry  | user      | operator              | audited
transfer:cancel | user      | operator              | audited
link:edit       | user      | operator              | audited
dataset:read    | user      | {READERS}             |
dataset:grant   | user      | owner operator        | audited
dataset:close   | user      | owner operator        | audited
dataset:recover | user      | owner operator        | audited
decision:read   | user      | {READERS}             |
agent:read      | user      | {READERS}             |
grid:read       | user      | {READERS}             |
view:read       | user      | {READERS}             |
view:save       | user      | {READERS}             | audited
schema:read     | user      | {READERS}             |
config:read     | user      | {READERS}             |
config:edit     | user      |                       | audited
share:edit      | user      | share-editor          | audited
change:draft    | user      | share-editor          | audited
site:advertise  | enrolment |                       |
pilot:register  | enrolment |                       | audited
pilot:match     | pilot     |                       |
pilot:report    | pilot     |                       |
pilot:settled   | pilot     |                       |
job:report      | job       |                       | own
tree:edit       | user      | operator              | audited
tree:pull       | child     |                       |
tree:report     | child     |                       |
"""


@dataclass(frozen=True, slots=True)
class Permission:
    """One line of the table.

    `roles` counts for users only; `owner` there stands for a submitter who owns the object, or who submitted it for its owner and
    has the role production. `audited`: each unsafe call leaves an audit row, also a refused one. `superuser`: whether a superuser
    has it without a role. `own`: the address must name the job of the token.
    """

    name: str
    kinds: frozenset[Kind]
    roles: frozenset[str]
    audited: bool
    superuser: bool
    own: bool


def _parsed(table: str) -> Iterator[Permission]:
    for line in table.strip().splitlines():
        if line.startswith("#"):
            continue
        name, kinds, roles, notes = (cell.strip() for cell in line.split("|"))
        marks = set(notes.split())
        yield Permission(
            name=name,
            kinds=frozenset(kinds.split()),  # type: ignore[arg-type]
            roles=frozenset(roles.split()),
            audited="audited" in marks,
            superuser="nosuper" not in marks,
            own="own" in marks,
        )


PERMISSIONS: Registry[Permission] = Registry("permission")
"""Name -> permission."""
for _permission in _parsed(_TABLE):
    PERMISSIONS.add(_permission.name, _permission)


def may(
    principal: Principal, permission: str, vo: str | None = None, owner: str | None = None, submitted_by: str | None = None
) -> bool:
    """Whether the principal has the permission in this VO, for an object that the user named `owner` owns.

    `submitted_by`: who submitted it for the owner, where that counts.

    Without `vo` the question is whether it has it in any VO at all, which is what a route asks before an object is known; then
    ownership is left open, so that the view has to ask again with the object's VO and owner. UnknownName for a permission
    without a line.
    """
    entry = PERMISSIONS[permission]
    if principal.kind not in entry.kinds:
        return False
    if principal.kind != "user":
        return vo is None or not principal.vo or vo == principal.vo
    if principal.superuser:
        return entry.superuser
    held = principal.roles.get(vo, frozenset()) if vo is not None else frozenset().union(*principal.roles.values())
    for_owner = submitted_by == principal.name and PRODUCTION in held
    if "owner" in entry.roles and "submitter" in held and (vo is None or owner == principal.name or for_owner):
        return True
    return bool(entry.roles & held)


@dataclass(frozen=True, slots=True)
class VoScope:
    """The VOs that somebody may look into: all of them, or these."""

    everything: bool
    names: frozenset[str] = frozenset()

    def __contains__(self, vo: object) -> bool:
        return self.everything or vo in self.names

    def q(self, field: str = "vo") -> Q:
        """The condition for `queryset.filter(...)`; `field` is the path to the VO, say `task__vo`."""
        return Q() if self.everything else Q(**{f"{field}__in": sorted(self.names)})


def visible_vos(principal: Principal, permission: str = "task:read") -> VoScope:
    """The VOs in which the principal has the permission; each list, filter, export and single read goes through it."""
    entry = PERMISSIONS[permission]
    if principal.kind not in entry.kinds:
        return VoScope(everything=False)
    if principal.kind != "user":
        return VoScope(everything=not principal.vo, names=frozenset({principal.vo} - {""}))
    if principal.superuser:
        return VoScope(everything=entry.superuser)
    return VoScope(
        everything=False, names=frozenset(vo for vo in principal.roles if may(principal, permission, vo, principal.name))
    )
