"""Groups of owners as matching knows them: their shares and what they allow, from the JSON key GROUPS. Pure.

Source: seed 002; facts on matching a4, a7; decision H4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, Strict

from broker_site.foundation.outside_data import OutsideDataError, read

JOB_SHARING = "JOB_SHARING"
"""Property of a group each of whose members' private pilots may run the jobs of all of them."""
DEFAULT_SHARE = 1000.0
MOST_GROUPS = 10_000
MOST_KEPT = 64


class Group(BaseModel):
    """A group of owners: its share (relative to the other groups), its properties, and whether it may work in the background."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    share: Annotated[float, Strict(), Field(ge=0, le=1e12)] = DEFAULT_SHARE
    properties: Annotated[tuple[Annotated[str, Strict(), Field(min_length=1, max_length=64)], ...], Field(max_length=100)] = ()
    background: Annotated[bool, Strict()] = False


UNNAMED = Group()
"""A group that the key does not name."""

Groups = Annotated[dict[Annotated[str, Field(min_length=1, max_length=64)], Group], Field(max_length=MOST_GROUPS)]


_read: dict[int, tuple[Mapping[str, Any], frozenset[str]]] = {}
"""Values of the key as they were read, by identity: each ask needs them, and the configuration keeps one object for all."""


def sharing_groups_of(value: Mapping[str, Any]) -> frozenset[str]:
    """As `sharing_groups`, of a value as the configuration keeps it, which never changes: each is read once."""
    kept = _read.get(id(value))
    if kept is None or kept[0] is not value:
        if len(_read) >= MOST_KEPT:
            _read.clear()
        kept = _read[id(value)] = (value, sharing_groups(read_groups(value)))
    return kept[1]


def read_groups(value: Mapping[str, Any]) -> dict[str, Group]:
    """The groups as the key GROUPS has them, by name; those that it does not name are `UNNAMED`. Raises OutsideDataError."""
    plain = {name: dict(group) if isinstance(group, Mapping) else group for name, group in value.items()}
    found: dict[str, Group] = read(Groups, plain, "", "field of a group")
    return found


def group_faults(value: Any) -> str | None:
    """What is wrong with a value of the key GROUPS, in one line."""
    if not isinstance(value, Mapping):
        return 'an object is expected: group -> {"share": 1000, "properties": ["JOB_SHARING"], "background": false}'
    try:
        read_groups(value)
    except OutsideDataError as bad:
        return str(bad)
    return None


def sharing_groups(groups: Mapping[str, Group]) -> frozenset[str]:
    """The groups whose jobs a private pilot of any of their members may run."""
    return frozenset(name for name, group in groups.items() if JOB_SHARING in group.properties)


class Credential(NamedTuple):
    """What the credential of a pilot allows: `private`, the work of `owner` in `owner_group` (empty: in whatever group)."""

    private: bool = False
    owner: str = ""
    owner_group: str = ""


@dataclass(frozen=True, slots=True)
class Served:
    """The only owners and groups whose work a pilot does; an empty set: all."""

    owners: frozenset[str] = frozenset()
    owner_groups: frozenset[str] = frozenset()


def served(credential: Credential, owners: frozenset[str], owner_groups: frozenset[str], sharing: frozenset[str]) -> Served:
    """Whose work a pilot does that asks for these owners and groups (empty: all it may).

    A generic pilot gets what it asks for. A private one is held to its group, and to its owner unless the group shares its jobs
    (`sharing`); then it may ask for single owners. What it asks for beyond its credential is as if it had not asked.
    """
    if not credential.private:
        return Served(owners, owner_groups)
    groups = frozenset({credential.owner_group}) if credential.owner_group else owner_groups
    if credential.owner_group in sharing:
        return Served(owners, groups)
    return Served(frozenset({credential.owner}), groups)
