"""What a page shows as commands: of the client `broker`, and of curl against REST."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlencode

from broker_site.client.credentials import TOKEN

LISTS: Mapping[str, tuple[str, str]] = {
    "tasks": ("broker ls", "tasks/"),
    "jobs": ("broker job ls", "jobs/"),
    "queues": ("broker queue ls", "queues/"),
    "datasets": ("broker dataset ls", "datasets/"),
    "files": ("", "files/"),
    "transfers": ("", "transfers/"),
    "pilots": ("", "pilots/"),
    "links": ("", "links/"),
    "changes": ("", "config/changes/"),
    "elements": ("", "elements/"),
    "tree": ("", "tree/children/"),
}
"""List of the pages -> the command that lists the same, where there is one, and the path in REST."""
OBJECTS: Mapping[str, tuple[str, str]] = {
    "task": ("broker show", "tasks"),
    "job": ("broker job show", "jobs"),
    "queue": ("broker queue show", "queues"),
    "dataset": ("broker dataset show", "datasets"),
    "transfer": ("", "transfers"),
    "element": ("", "elements"),
    "child": ("", "tree/children"),
    "pilot": ("", "pilots"),
}


def of_list(name: str, filters: Sequence[tuple[str, str]], site: str) -> list[str]:
    """The commands that list what a page does; `site`: the address of the server, without a slash at its end."""
    if name not in LISTS:
        return []
    verb, path = LISTS[name]
    query = f"?{urlencode(filters)}" if filters else ""
    words = [shlex.quote(f"{field}={value}") for field, value in filters]
    return [*([" ".join([verb, *words])] if verb else []), _curl(f"{site}/api/v1/{path}{query}")]


def of_object(kind: str, name: object, site: str) -> list[str]:
    """The commands that show one thing."""
    verb, path = OBJECTS[kind]
    shown = f"{verb} {shlex.quote(str(name))}"
    return [*([shown] if verb else []), _curl(f"{site}/api/v1/{path}/{quote(str(name), safe='')}/")]


def _curl(address: str) -> str:
    return f'curl -sH "Authorization: Bearer ${TOKEN}" {shlex.quote(address)}'
